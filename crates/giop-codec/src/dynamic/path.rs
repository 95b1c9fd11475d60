//! Paths to parts of a value.

use core::fmt;

use crate::Printable;

/// The path from a value to a part of it: `payload.frames[3].width`.
///
/// `Display` writes a member by its name, an element by its index, the content of an any as `.value`, and a
/// node of a graph of value types by its number, as `->2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(Vec<Step>);

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// To a member of a struct, union, exception or value type.
    Member(Box<str>),
    /// To an element of a sequence or array.
    Index(usize),
    /// To the content of an any.
    Content,
    /// To a node of a graph of value types.
    Node(u32),
}

impl Path {
    /// The path to the value itself.
    pub const ROOT: Path = Path(Vec::new());

    /// Returns the steps, outermost first.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Returns whether this is the path to the value itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Prepends a step from the enclosing value.
    pub fn inside(mut self, step: Step) -> Path {
        self.0.insert(0, step);
        self
    }

    /// Appends a step.
    pub fn then(mut self, step: Step) -> Path {
        self.0.push(step);
        self
    }
}

impl FromIterator<Step> for Path {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Path {
        Path(steps.into_iter().collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            match step {
                Step::Member(name) => write!(f, "{dot}{}", Printable::new(name))?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Content => write!(f, "{dot}value")?,
                Step::Node(node) => write!(f, "->{node}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_with_dots_and_brackets() {
        let path: Path = [Step::Index(3), Step::Member("width".into())].into_iter().collect();
        let path = path.inside(Step::Member("frames".into())).inside(Step::Member("payload".into()));
        assert_eq!(path.to_string(), "payload.frames[3].width");
        assert_eq!(
            path.then(Step::Content).then(Step::Node(2)).to_string(),
            "payload.frames[3].width.value->2"
        );
        assert_eq!(Path::ROOT.to_string(), "");
    }
}
