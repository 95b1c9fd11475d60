//! Exceptions, interfaces and value types.

use super::site::{Kind, Site};

impl Site {
    pub(crate) fn exception(&mut self) {
        let name = self.fresh("Failure");
        let member = self.a_type();
        match self.fault(&["not-a-type", "redefinition"]) {
            None => {}
            Some(0) => {
                return self.put(&format!("exception {name} {{ }} ; struct Of{name} {{ §{name} a ; }} ;"));
            }
            Some(_) => return self.put(&format!("exception {name} {{ long why ; long §why ; }} ;")),
        }
        self.put(&format!("exception {name} {{ {member} why ; }} ;"));
        self.define(&name, Kind::Exception);
    }

    pub(crate) fn interface(&mut self) {
        let name = self.fresh("Store");
        let base = self.name_of_one(|kind| *kind == Kind::Interface).filter(|_| self.random.one_in(2));
        let base = base.map_or(String::new(), |base| format!(": {base}"));
        let raises = self.name_of_one(|kind| *kind == Kind::Exception);
        let raises = raises.map_or(String::new(), |raises| format!("raises ( {raises} )"));
        let (first, second, result, attribute) = (self.a_type(), self.a_type(), self.a_type(), self.a_type());
        let anonymous = |ty: &str| ty.starts_with("sequence");
        let plain = |ty: String| if anonymous(&ty) { "long".to_owned() } else { ty };
        let (first, second, result, attribute) =
            (plain(first), plain(second), plain(result), plain(attribute));
        let (find, last) = (self.fresh("find"), self.fresh("last"));
        let mut body = format!("{result} {find} ( in {first} a , inout {second} b ) {raises} ; ");
        body += &format!("readonly attribute {attribute} {last} ; oneway void of_{find} ( in long a ) ; ");
        let fault = self.fault(&[
            "oneway",
            "not-an-exception",
            "redefinition",
            "redefinition",
            "not-an-interface",
            "duplicate-base",
            "anonymous-type",
            "syntax",
        ]);
        let head = match fault {
            None => format!("interface {name} {base} {{"),
            Some(0) => {
                body += "oneway §long n ( ) ;";
                format!("interface {name} {base} {{")
            }
            Some(1) => {
                self.put(&format!("struct Of{name} {{ long a ; }} ;"));
                body += &format!("void n ( ) raises ( §Of{name} ) ;");
                format!("interface {name} {base} {{")
            }
            Some(2) => {
                body += "void n ( in long a , in short §a ) ;";
                format!("interface {name} {{")
            }
            Some(3) => {
                body += &format!("void §{find} ( in string other ) ;");
                format!("interface {name} {{")
            }
            Some(4) => {
                self.put(&format!("struct Of{name} {{ long a ; }} ;"));
                format!("interface {name} : §Of{name} {{")
            }
            Some(5) => {
                self.put(&format!("interface Of{name} {{ }} ;"));
                format!("interface {name} : Of{name} , §Of{name} {{")
            }
            Some(6) => {
                body += "void n ( in §sequence < long > a ) ;";
                format!("interface {name} {{")
            }
            Some(_) => {
                body += "void n ( §long a ) ;";
                format!("interface {name} {{")
            }
        };
        self.put(&format!("{head} {body} }} ;"));
        self.define(&name, Kind::Interface);
        self.scope.push(name);
        self.define(&find, Kind::Native);
        self.known.pop();
        self.scope.pop();
    }

    pub(crate) fn value(&mut self) {
        let (name, derived) = (self.fresh("Thing"), self.fresh("Wider"));
        let member = self.a_type();
        let fault = self.fault(&["truncatable", "not-a-value", "redefinition", "abstract-value", "supports"]);
        let body = format!("public {member} first ; private {name} next ; factory make ( in long a ) ;");
        let wider = format!("valuetype {derived} : truncatable {name} {{ public long second ; }} ;");
        match fault {
            None => self.put(&format!("valuetype {name} {{ {body} }} ; {wider}")),
            Some(0) => {
                self.put(&format!("abstract valuetype {name} {{ }} ;"));
                self.put(&format!("valuetype {derived} : §truncatable {name} {{ public long a ; }} ;"));
            }
            Some(1) => {
                self.put(&format!("struct {name} {{ long a ; }} ; valuetype {derived} : §{name} {{ }} ;"));
            }
            Some(2) => self.put(&format!("valuetype {name} {{ {body} public long §first ; }} ; {wider}")),
            Some(3) => return self.put(&format!("abstract valuetype {name} {{ public long §a ; }} ;")),
            Some(_) => {
                self.put(&format!("interface A{name} {{ }} ; interface B{name} {{ }} ;"));
                return self.put(&format!("valuetype {derived} supports A{name} , §B{name} {{ }} ;"));
            }
        }
        self.define(&name, Kind::Value);
        self.define(&derived, Kind::Value);
    }
}
