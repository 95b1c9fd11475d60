"""A back end of omniidl: one line for each definition of a text, those of included files too.

Kind, scoped name, repository id, then what the definition consists of. `lines.rs` makes the same lines of what
`idlc model --json` prints.
"""

import json
import struct

from omniidl import idlast, idltype

BASES = {
    idltype.tk_short: "short",
    idltype.tk_long: "long",
    idltype.tk_ushort: "unsigned short",
    idltype.tk_ulong: "unsigned long",
    idltype.tk_float: "float",
    idltype.tk_double: "double",
    idltype.tk_boolean: "boolean",
    idltype.tk_char: "char",
    idltype.tk_octet: "octet",
    idltype.tk_any: "any",
    idltype.tk_TypeCode: "CORBA::TypeCode",
    idltype.tk_longlong: "long long",
    idltype.tk_ulonglong: "unsigned long long",
    idltype.tk_longdouble: "long double",
    idltype.tk_wchar: "wchar",
    idltype.tk_void: "void",
}

BUILT_IN = {"CORBA::Object": "Object", "CORBA::ValueBase": "ValueBase"}


def name(decl):
    return "::".join(decl.scopedName())


def names(decls):
    return " ".join(name(decl) for decl in decls)


def bounded(kind, bound):
    return "%s<%d>" % (kind, bound) if bound else kind


def type_of(ty, sizes=None):
    if isinstance(ty, idltype.Base):
        text = BASES[ty.kind()]
    elif isinstance(ty, idltype.String):
        text = bounded("string", ty.bound())
    elif isinstance(ty, idltype.WString):
        text = bounded("wstring", ty.bound())
    elif isinstance(ty, idltype.Sequence):
        bound = ", %d" % ty.bound() if ty.bound() else ""
        text = "sequence<%s%s>" % (type_of(ty.seqType()), bound)
    elif isinstance(ty, idltype.Fixed):
        text = "fixed<%d, %d>" % (ty.digits(), ty.scale())
    else:
        text = "::".join(ty.scopedName())
        text = BUILT_IN.get(text, text)
    return text + "".join("[%d]" % size for size in sizes or [])


def value(it, kind):
    if isinstance(it, idlast.Enumerator):
        return it.identifier()
    if kind in (idltype.tk_float, idltype.tk_double):
        return "float " + struct.pack(">d", it).hex()
    if kind == idltype.tk_boolean:
        return "true" if it else "false"
    if kind in (idltype.tk_char, idltype.tk_string):
        return json.dumps(it, ensure_ascii=False)
    return str(it)


def members(of):
    return "; ".join(
        "%s %s" % (type_of(member.memberType(), declarator.sizes()), declarator.identifier())
        for member in of
        for declarator in member.declarators()
    )


def params(of):
    directions = {0: "in", 1: "out", 2: "inout"}
    return ", ".join(
        "%s %s %s" % (directions[param.direction()], type_of(param.paramType()), param.identifier())
        for param in of
    )


def labels(case):
    return " ".join(
        "default" if label.default() else value(label.value(), label.labelKind()) for label in case.labels()
    )


class Lines(object):
    def __init__(self):
        self.lines = set()
        self.modules = {}

    def put(self, kind, decl, *parts):
        head = (kind, name(decl), decl.repoId())
        self.lines.add(" ".join(part for part in head + parts if part))

    def constructed(self, decl):
        """What a typedef, member or case defines on the way."""
        if decl.constrType():
            ty = decl.memberType() if hasattr(decl, "memberType") else None
            ty = ty or (decl.caseType() if hasattr(decl, "caseType") else None)
            ty = ty or decl.aliasType()
            self.one(ty.decl())

    def all(self, decls):
        for decl in decls:
            self.one(decl)

    def one(self, decl):
        kind = type(decl).__name__
        getattr(self, kind)(decl)

    def Module(self, decl):
        # Opened again it is another node; a version counts at the first one, wherever the pragma stands.
        self.modules.setdefault(name(decl), decl)
        self.all(decl.definitions())

    def Interface(self, decl):
        flavour = "abstract" if decl.abstract() else "local" if decl.local() else ""
        self.put("interface", decl, flavour, ": " + names(decl.inherits()))
        self.all(decl.contents())

    def Forward(self, decl):
        # Unless it is defined somewhere, this is all there is.
        if decl.fullDecl() is decl or decl.fullDecl() is None:
            flavour = "abstract" if decl.abstract() else "local" if decl.local() else ""
            self.put("interface", decl, flavour, ": ")

    def StructForward(self, decl):
        pass

    UnionForward = ValueForward = StructForward

    def Const(self, decl):
        self.put("const", decl, type_of(decl.constType()), "=", value(decl.value(), decl.constKind()))

    def Typedef(self, decl):
        self.constructed(decl)
        for declarator in decl.declarators():
            self.put("typedef", declarator, type_of(decl.aliasType(), declarator.sizes()))

    def Struct(self, decl):
        self.body("struct", decl)

    def Exception(self, decl):
        self.body("exception", decl)

    def body(self, kind, decl):
        for member in decl.members():
            self.constructed(member)
        self.put(kind, decl, "{", members(decl.members()), "}")

    def Union(self, decl):
        if decl.constrType():
            self.one(decl.switchType().decl())
        cases = []
        for case in decl.cases():
            self.constructed(case)
            of = case.declarator()
            ty = type_of(case.caseType(), of.sizes())
            cases.append("%s: %s %s" % (labels(case), ty, of.identifier()))
        self.put("union", decl, "switch", type_of(decl.switchType()), "{", "; ".join(cases), "}")

    def Enum(self, decl):
        enumerators = " ".join(enumerator.identifier() for enumerator in decl.enumerators())
        self.put("enum", decl, "{", enumerators, "}")

    def Attribute(self, decl):
        readonly = "readonly" if decl.readonly() else ""
        for declarator in decl.declarators():
            self.put("attribute", declarator, readonly, type_of(decl.attrType()))

    def Operation(self, decl):
        self.put(
            "operation",
            decl,
            "oneway" if decl.oneway() else "",
            type_of(decl.returnType()),
            "(%s)" % params(decl.parameters()),
            "raises (%s)" % names(decl.raises()),
            "context (%s)" % " ".join(decl.contexts()),
        )

    def Native(self, decl):
        self.put("native", decl)

    def ValueBox(self, decl):
        if decl.constrType():
            self.one(decl.boxedType().decl())
        self.put("box", decl, type_of(decl.boxedType()))

    def ValueAbs(self, decl):
        self.value_type("abstract", decl)

    def Value(self, decl):
        self.value_type("custom" if decl.custom() else "", decl)

    def value_type(self, modifier, decl):
        truncatable = "truncatable" if isinstance(decl, idlast.Value) and decl.truncatable() else ""
        state = []
        for member in decl.statemembers():
            self.constructed(member)
            access = "private" if member.memberAccess() else "public"
            for declarator in member.declarators():
                ty = type_of(member.memberType(), declarator.sizes())
                state.append("%s %s %s" % (access, ty, declarator.identifier()))
        factories = [
            "factory %s(%s) raises (%s)" % (made.identifier(), params(made.parameters()), names(made.raises()))
            for made in decl.factories()
        ]
        self.put(
            "value",
            decl,
            modifier,
            truncatable,
            ": " + names(decl.inherits()),
            "supports " + names(decl.supports()),
            "{",
            "; ".join(state + factories),
            "}",
        )
        self.all(decl.declarations())
        self.all(decl.callables())


def run(tree, _args):
    lines = Lines()
    lines.all(tree.declarations())
    for module in lines.modules.values():
        lines.put("module", module)
    for line in sorted(lines.lines):
        print(line)
