//! [`Program`]: a type code with its compiled steps.

use std::fmt;

use super::skip::contents;
use crate::program::{Contents, Steps};
use crate::typecode::{Nodes, TypeCode};

/// A type code with its program: a list of steps, which is executed on encoded values.
///
/// A type code and its types are compiled once, on first use. Cloning increments a reference count.
///
/// ```
/// use giop_codec::cdr::{CdrEncode, Decoder, Encoder};
/// use giop_codec::dynamic::program::Program;
/// use giop_codec::typecode::Typed;
/// use giop_codec::{ByteOrder, Version};
///
/// let names = vec!["one".to_owned(), "two".to_owned()];
/// let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
/// names.encode(&mut e)?;
/// e.put_u16(7);
///
/// let bytes = e.into_bytes();
/// let mut d = Decoder::from_bytes(&bytes, ByteOrder::Big, Version::V1_2);
/// let contents = Program::of(&Vec::<String>::type_code()).skip(&mut d)?;
/// assert!(contents.has_text);
/// assert_eq!(d.read_u16()?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Program {
    pub(crate) code: TypeCode,
}

impl Program {
    /// Returns the program of a type, which is compiled unless that has been done before.
    pub fn of(code: &TypeCode) -> Program {
        let program = Program { code: code.clone() };
        program.steps();
        program
    }

    /// Returns the type code.
    pub fn type_code(&self) -> &TypeCode {
        &self.code
    }

    /// Returns what values of the type can contain.
    pub fn contents(&self) -> Contents {
        contents(self.nodes(), self.code.root)
    }

    pub(crate) fn steps(&self) -> &Steps {
        self.code.nodes.steps()
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.code.nodes
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({}, {} steps)", self.code, self.steps().ops.len())
    }
}
