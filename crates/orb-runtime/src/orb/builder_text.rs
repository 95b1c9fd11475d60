//! Options of the builder for the encoding of text.

use std::sync::Arc;

use giop_codec::Version;
use giop_codec::cdr::{CodeSets, InvalidText, WCharSet};
use giop_codec::code_set::{CodeSetComponent, CodeSetId};

use crate::config::{BuildError, Config};
use crate::orb::builder::OrbBuilder;

impl OrbBuilder {
    /// Sets the code sets of `char` and `string`, for this ORB as a client and as a server: the native one,
    /// which is preferred, and the ones to which text can be converted, in order of preference. The default
    /// is UTF-8 with conversion to ISO 8859-1.
    ///
    /// ISO 8859-1, -9, -11 and -15, ISO 646, UTF-8 and the EBCDIC sets IBM-037, IBM-500 and IBM-1047 are
    /// always supported. The feature `encoding_rs` adds others. A server accepts all supported code sets from
    /// its clients, even if it does not publish them. A character that does not exist in the code set of a
    /// connection raises `DATA_CONVERSION` minor OMG 1. If client and server have no common code set, a call
    /// with text raises `CODESET_INCOMPATIBLE` minor OMG 1. Calls without text still work.
    /// ```
    /// # use orb_runtime::{Orb, wire::CodeSetId};
    /// let conversion = [CodeSetId::ISO_8859_15, CodeSetId::ISO_8859_1];
    /// let builder = Orb::builder().char_code_sets(CodeSetId::UTF_8, &conversion);
    /// ```
    #[doc(alias = "nativeCharCodeSet")]
    pub fn char_code_sets(mut self, native: CodeSetId, conversion: &[CodeSetId]) -> Self {
        Arc::make_mut(&mut self.core.config.connection.code_sets).for_char =
            CodeSetComponent::new(native, conversion);
        self
    }

    /// Sets the code sets of `wchar` and `wstring`: UTF-16, UCS-2 or UCS-4, or [`CodeSetId::NONE`] to disable
    /// wide text. The default is UTF-16.
    #[doc(alias = "nativeWCharCodeSet")]
    pub fn wchar_sets(mut self, native: CodeSetId, conversion: &[CodeSetId]) -> Self {
        Arc::make_mut(&mut self.core.config.connection.code_sets).for_wchar =
            CodeSetComponent::new(native, conversion);
        self
    }

    /// Sets the code set of `wchar` and `wstring` for peers that announce no code sets: servers whose
    /// references contain none, and clients whose requests contain none. This has no effect in GIOP 1.0,
    /// which does not support wide text.
    ///
    /// The default is [`CodeSetId::NONE`], as in the standard: wide text for such a server raises
    /// `INV_OBJREF` minor OMG 1, and wide text from such a client raises `BAD_PARAM` minor OMG 23. Old ORBs
    /// often use [`CodeSetId::UTF_16`] or [`CodeSetId::UCS_2`].
    #[doc(alias = "defaultWCharCodeSet")]
    pub fn assume_wchar_set(mut self, set: CodeSetId) -> Self {
        self.core.config.connection.assumed_wchar_set = set;
        self
    }

    /// Sets the handling of received text that is invalid in the code set of the connection: the text is
    /// refused (default), the invalid parts are replaced, or a `string` is read as ISO 8859-1.
    pub fn invalid_text(mut self, invalid_text: InvalidText) -> Self {
        self.core.config.connection.invalid_text = invalid_text;
        self
    }
}

impl Config {
    pub(crate) fn check_code_sets(&self) -> Result<(), BuildError> {
        let assumed = Some(self.connection.assumed_wchar_set);
        let assumed = assumed.filter(|id| *id != CodeSetId::NONE && WCharSet::from_id(*id).is_none());
        let unsupported = self.connection.code_sets.first_unsupported().or(assumed);
        unsupported.map_or(Ok(()), |id| Err(BuildError::CodeSet(id)))
    }

    /// Returns the code sets for a peer that announces none.
    pub(crate) fn assumed_code_sets(&self, version: Version) -> CodeSets {
        let assumed =
            WCharSet::from_id(self.connection.assumed_wchar_set).filter(|_| version > Version::V1_0);
        CodeSets { wchar: assumed, ..CodeSets::default() }
    }
}
