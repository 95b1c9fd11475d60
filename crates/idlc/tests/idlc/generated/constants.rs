//! Constants, with what they are worth.

use super::site::{Kind, Number, Site};

impl Site {
    /// A whole number, of an expression of some depth.
    fn expression(&mut self, depth: usize) -> (String, i64) {
        if depth > 0 {
            // omniidl finds overflows where signed and unsigned numbers meet.
            match self.random.below(4) {
                0 => return self.binary(depth),
                1 | 2 if !self.plan.classic => return self.unary(depth),
                _ => {}
            }
        }
        let constant = self.one(|kind| matches!(kind, Kind::Integer(_)));
        if let Some(constant) = constant
            && self.random.one_in(3)
        {
            let Kind::Integer(value) = constant.kind else { unreachable!() };
            return (self.spelled(&constant.path), value);
        }
        let value = i64::try_from(self.random.below(1000)).unwrap();
        let text = match self.random.below(4) {
            0 => format!("0x{value:X}"),
            1 if value > 0 => format!("0{value:o}"),
            _ => value.to_string(),
        };
        (text, value)
    }

    /// Operators in a row, which other compilers want parentheses between.
    fn unary(&mut self, depth: usize) -> (String, i64) {
        let (mut text, mut value) = self.expression(depth - 1);
        if text.contains(' ') {
            text = format!("( {text} )");
        }
        for _ in 0..1 + self.random.below(3) {
            let operator = *self.random.pick(&["-", "+", "~"]);
            value = match operator {
                "-" => -value,
                "+" => value,
                _ => !value,
            };
            // With and without a blank.
            let blank = if self.random.one_in(2) { " " } else { "" };
            text = format!("{operator}{blank}{text}");
        }
        (text, value)
    }

    fn binary(&mut self, depth: usize) -> (String, i64) {
        let (left, a) = self.expression(depth - 1);
        let (right, b) = self.expression(depth - 1);
        let operators: &[&str] =
            if self.plan.classic { &["+", "|", "^", "&"] } else { &["+", "-", "*", "|", "^", "&"] };
        let operator = *self.random.pick(operators);
        let value = match operator {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "|" => a | b,
            "^" => a ^ b,
            _ => a & b,
        };
        // The others stand in parentheses: precedence is not what is looked for.
        let inside = |text: String| if text.contains(' ') { format!("( {text} )") } else { text };
        (format!("{} {operator} {}", inside(left), inside(right)), value)
    }

    pub(crate) fn integer(&mut self) {
        let name = self.fresh("COUNT");
        let (text, value) = self.expression(3);
        let (text, value) = if i32::try_from(value).is_ok() { (text, value) } else { ("12".to_owned(), 12) };
        let fault = self.fault(&[
            "out-of-range",
            "type-mismatch",
            "division-by-zero",
            "bad-shift",
            "not-a-constant",
            "not-a-constant-type",
            "not-found",
            "bad-literal",
        ]);
        match fault {
            None => self.put(&format!("const long {name} = {text} ;")),
            Some(0) => return self.put(&format!("const octet {name} = §256 ;")),
            Some(1) => return self.put(&format!("const long {name} = §\"text\" ;")),
            Some(2) => return self.put(&format!("const long {name} = 7 / §0 ;")),
            Some(3) => return self.put(&format!("const long {name} = 1 << §64 ;")),
            Some(4) => {
                return self
                    .put(&format!("struct Of{name} {{ long a ; }} ; const long {name} = §Of{name} ;"));
            }
            Some(5) => {
                return self.put(&format!("struct Of{name} {{ long a ; }} ; const §Of{name} {name} = 1 ;"));
            }
            Some(6) => return self.put(&format!("const long {name} = 1 + §nowhere ;")),
            Some(_) => return self.put(&format!("const long {name} = §089 ;")),
        }
        self.define(&name, Kind::Integer(value));
        self.constants.push((self.path(&name).join("::"), Number::Integer(value)));
    }

    /// A fixed point number, which a literal with a point is exactly.
    pub(crate) fn fixed(&mut self) {
        let (ty, name) = (self.fresh("Price"), self.fresh("COST"));
        let scale = 1 + self.random.below(4);
        let digits = scale + 1 + self.random.below(3);
        let most = 10_i128.pow(u32::try_from(digits).unwrap());
        let mut unscaled = i128::try_from(self.random.below(usize::try_from(most).unwrap())).unwrap();
        let divisor = 10_i128.pow(u32::try_from(scale).unwrap());
        let number = format!("{}.{:0scale$}", unscaled / divisor, unscaled % divisor);
        let (sign, number) = match self.random.below(4) {
            0 => ("", format!("{number}d")),
            1 => ("-", format!("{number}D")),
            2 if !self.plan.classic => ("-", number),
            _ if !self.plan.classic => ("", number + "0"),
            _ => ("", format!("{number}d")),
        };
        self.put(&format!("typedef fixed < {digits} , {scale} > {ty} ;"));
        self.define(&ty, Kind::Data);
        match self.fault(&["out-of-range", "type-mismatch", "bad-fixed", "bad-fixed"]) {
            None => {}
            Some(0) => return self.put(&format!("const {ty} {name} = §{most}.5d ;")),
            Some(1) => return self.put(&format!("const {ty} {name} = §'c' ;")),
            Some(2) => return self.put(&format!("typedef fixed < §32 , 2 > {name} ;")),
            Some(_) => return self.put(&format!("typedef fixed < 3 , §4 > {name} ;")),
        }
        // In the standard's form, the type of the constant has no digits. Applications write the name of the
        // typedef.
        let written = if self.plan.classic { "fixed".to_owned() } else { ty };
        self.put(&format!("const {written} {name} = {sign}{number} ;"));
        let mut scale = u8::try_from(scale).unwrap();
        while scale > 0 && unscaled % 10 == 0 {
            (unscaled, scale) = (unscaled / 10, scale - 1);
        }
        let unscaled = if sign == "-" { -unscaled } else { unscaled };
        self.define(&name, Kind::Native);
        self.known.pop();
        self.constants.push((self.path(&name).join("::"), Number::Fixed { unscaled, scale }));
    }
}
