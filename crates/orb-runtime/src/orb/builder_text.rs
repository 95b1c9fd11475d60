//! Builder options for text.

use std::sync::Arc;

use giop_codec::Version;
use giop_codec::cdr::{CodeSets, InvalidText, WCharSet};
use giop_codec::code_set::{CodeSetComponent, CodeSetId};

use crate::config::{BuildError, Config};
use crate::orb::builder::OrbBuilder;

impl OrbBuilder {
    /// Sets the code sets of `char` and `string`, of this ORB as a client and as a server: the native one,
    /// which is preferred if the peer supports it, and those that text is converted to, best first. The
    /// default is UTF-8, and ISO 8859-1.
    ///
    /// ISO 8859-1, -9, -11 and -15, ISO 646, UTF-8 and the EBCDIC sets IBM-037, IBM-500 and IBM-1047 are
    /// always supported. The feature `encoding_rs` adds others. A server accepts any of these from its
    /// clients, even if it does not publish it. A character that the set of a connection does not have is
    /// `DATA_CONVERSION` minor OMG 1. If a server has no code set in common with this side, a call with text
    /// is `CODESET_INCOMPATIBLE` minor OMG 1. Calls without text still work.
    /// ```
    /// # use orb_runtime::{Orb, wire::CodeSetId};
    /// let conversion = [CodeSetId::ISO_8859_15, CodeSetId::ISO_8859_1];
    /// let builder = Orb::builder().char_code_sets(CodeSetId::UTF_8, &conversion);
    /// ```
    #[doc(alias = "nativeCharCodeSet")]
    pub fn char_code_sets(mut self, native: CodeSetId, conversion: &[CodeSetId]) -> Self {
        Arc::make_mut(&mut self.parts.config.connection.code_sets).for_char =
            CodeSetComponent::new(native, conversion);
        self
    }

    /// Sets the code sets of `wchar` and `wstring`: UTF-16, UCS-2 or UCS-4, or [`CodeSetId::NONE`] to disable
    /// wide text. The default is UTF-16.
    #[doc(alias = "nativeWCharCodeSet")]
    pub fn wchar_sets(mut self, native: CodeSetId, conversion: &[CodeSetId]) -> Self {
        Arc::make_mut(&mut self.parts.config.connection.code_sets).for_wchar =
            CodeSetComponent::new(native, conversion);
        self
    }

    /// Sets the code set of `wchar` and `wstring` for peers that name none: servers whose references have no
    /// code sets, and clients whose requests announce none. GIOP 1.0 has no wide text, whatever is set here.
    ///
    /// The default is [`CodeSetId::NONE`], as in the standard. Wide text for such a server is then
    /// `INV_OBJREF` minor OMG 1, and wide text from such a client `BAD_PARAM` minor OMG 23. Old ORBs often
    /// use [`CodeSetId::UTF_16`] or [`CodeSetId::UCS_2`].
    #[doc(alias = "defaultWCharCodeSet")]
    pub fn assume_wchar_set(mut self, set: CodeSetId) -> Self {
        self.parts.config.connection.assumed_wide = set;
        self
    }

    /// Sets the handling of received text that is not valid in the code set of its connection: it is refused
    /// (default), invalid parts are replaced, or a `string` is read as ISO 8859-1.
    pub fn invalid_text(mut self, invalid_text: InvalidText) -> Self {
        self.parts.config.connection.invalid_text = invalid_text;
        self
    }
}

impl Config {
    /// Returns an error for the first configured code set that is not supported.
    pub(crate) fn check_code_sets(&self) -> Result<(), BuildError> {
        let assumed = Some(self.connection.assumed_wide);
        let assumed = assumed.filter(|id| *id != CodeSetId::NONE && WCharSet::from_id(*id).is_none());
        match self.connection.code_sets.unsupported().or(assumed) {
            Some(id) => Err(BuildError::CodeSet(id)),
            None => Ok(()),
        }
    }

    /// Returns the code sets of text for a peer that names none.
    pub(crate) fn unannounced(&self, version: Version) -> CodeSets {
        let assumed = WCharSet::from_id(self.connection.assumed_wide).filter(|_| version > Version::V1_0);
        CodeSets { wchar: assumed, ..CodeSets::default() }
    }
}
