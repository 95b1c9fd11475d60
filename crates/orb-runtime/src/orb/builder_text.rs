//! Options of the builder that are about text.

use std::sync::Arc;

use giop_codec::Version;
use giop_codec::cdr::{CodeSets, InvalidText, WCharSet};
use giop_codec::code_set::{CodeSetComponent, CodeSetId};

use super::{BuildError, Config, OrbBuilder};

impl OrbBuilder {
    /// The code sets of `char` and `string`, of this ORB as a client and as a server: the native one, which is preferred where the peer
    /// has it, and those that text is converted to, best first. The default is UTF-8, and ISO 8859-1.
    ///
    /// Always there are ISO 8859-1, -9, -11 and -15, ISO 646, UTF-8 and the EBCDIC sets IBM-037, IBM-500 and IBM-1047; others come with the
    /// feature `encoding_rs`. A server takes any of these from its clients, also one that it does not publish. A character that the set
    /// of a connection does not have is `DATA_CONVERSION` minor OMG 1. Where a server has nothing in common with this side, a call with text is
    /// `CODESET_INCOMPATIBLE` minor OMG 1; calls without any go on.
    ///
    /// ```
    /// # use orb_runtime::{Orb, wire::CodeSetId};
    /// let builder = Orb::builder().char_sets(CodeSetId::UTF_8, &[CodeSetId::ISO_8859_15, CodeSetId::ISO_8859_1]);
    /// ```
    #[doc(alias = "nativeCharCodeSet")]
    pub fn char_sets(mut self, native: CodeSetId, conversion: &[CodeSetId]) -> Self {
        Arc::make_mut(&mut self.parts.config.code_sets).for_char = CodeSetComponent::new(native, conversion);
        self
    }

    /// The code sets of `wchar` and `wstring`: UTF-16, UCS-2 or UCS-4; [`CodeSetId::NONE`] for no wide text at all. The default is UTF-16.
    #[doc(alias = "nativeWCharCodeSet")]
    pub fn wchar_sets(mut self, native: CodeSetId, conversion: &[CodeSetId]) -> Self {
        Arc::make_mut(&mut self.parts.config.code_sets).for_wchar = CodeSetComponent::new(native, conversion);
        self
    }

    /// The code set of `wchar` and `wstring` towards peers that name none: servers whose references have no code sets, clients whose requests
    /// announce none. In GIOP 1.0 there is no wide text, whatever is assumed.
    ///
    /// The default is [`CodeSetId::NONE`], as the standard has it: wide text for such a server is `INV_OBJREF` minor OMG 1, that of such a client
    /// `BAD_PARAM` minor OMG 23. Old ORBs often mean [`CodeSetId::UTF_16`] or [`CodeSetId::UCS_2`].
    #[doc(alias = "defaultWCharCodeSet")]
    pub fn assume_wchar_set(mut self, set: CodeSetId) -> Self {
        self.parts.config.assumed_wide = set;
        self
    }

    /// What is done about received text that is not valid in the code set of its connection: it is refused (default), what is not valid is
    /// replaced, or a `string` is taken as ISO 8859-1.
    pub fn invalid_text(mut self, invalid_text: InvalidText) -> Self {
        self.parts.config.invalid_text = invalid_text;
        self
    }
}

impl Config {
    /// Whether all code sets that are named are here.
    pub(super) fn check_code_sets(&self) -> Result<(), BuildError> {
        let assumed = Some(self.assumed_wide);
        let assumed = assumed.filter(|id| *id != CodeSetId::NONE && WCharSet::from_id(*id).is_none());
        match self.code_sets.unsupported().or(assumed) {
            Some(id) => Err(BuildError::CodeSet(id)),
            None => Ok(()),
        }
    }

    /// The code sets of text with a peer that names none.
    pub(crate) fn unannounced(&self, version: Version) -> CodeSets {
        let assumed = WCharSet::from_id(self.assumed_wide).filter(|_| version > Version::V1_0);
        CodeSets { wchar: assumed, ..CodeSets::default() }
    }
}
