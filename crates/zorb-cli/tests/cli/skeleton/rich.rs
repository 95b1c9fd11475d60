// Servants of the interfaces in rich.idl, made by `idlc skeleton`.
// Each method raises NO_IMPLEMENT until you implement it.

use zorb::prelude::*;

/// A servant of interface `Base::Named`.
#[derive(Debug, Default)]
pub struct NamedImpl;

impl base::NamedServant for NamedImpl {
    /// IDL: `attribute string name`
    async fn name(&self) -> Result<String, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `attribute string name`
    async fn set_name(&self, value: &str) -> Result<(), SystemException> {
        let _ = (value,);
        Err(not_implemented())
    }
}

/// A servant of interface `Rich::Callback`.
#[derive(Debug, Default)]
pub struct CallbackImpl;

impl rich::CallbackServant for CallbackImpl {
    /// IDL: `oneway void ring(in string what, in long times)`
    async fn ring(&self, what: &str, times: i32) -> Result<(), SystemException> {
        let _ = (what, times);
        Err(not_implemented())
    }
}

/// A servant of interface `Rich::Scalars`.
#[derive(Debug, Default)]
pub struct ScalarsImpl;

impl rich::ScalarsServant for ScalarsImpl {
    /// IDL: `boolean a_boolean(in boolean a, inout boolean b, out boolean c)`
    async fn a_boolean(
        &self,
        a: bool,
        b: bool,
    ) -> Result<(bool, bool, bool), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `octet an_octet(in octet a, inout octet b, out octet c)`
    async fn an_octet(&self, a: u8, b: u8) -> Result<(u8, u8, u8), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `char a_char(in char a, inout char b, out char c)`
    async fn a_char(
        &self,
        a: Char,
        b: Char,
    ) -> Result<(Char, Char, Char), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `wchar a_wchar(in wchar a, inout wchar b, out wchar c)`
    async fn a_wchar(
        &self,
        a: WChar,
        b: WChar,
    ) -> Result<(WChar, WChar, WChar), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `short a_short(in short a, inout short b, out short c)`
    async fn a_short(&self, a: i16, b: i16) -> Result<(i16, i16, i16), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `unsigned short a_ushort(in unsigned short a, inout unsigned short b, out unsigned short c)`
    async fn a_ushort(
        &self,
        a: u16,
        b: u16,
    ) -> Result<(u16, u16, u16), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `long a_long(in long a, inout long b, out long c)`
    async fn a_long(&self, a: i32, b: i32) -> Result<(i32, i32, i32), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `unsigned long a_ulong(in unsigned long a, inout unsigned long b, out unsigned long c)`
    async fn a_ulong(&self, a: u32, b: u32) -> Result<(u32, u32, u32), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `long long a_longlong(in long long a, inout long long b, out long long c)`
    async fn a_longlong(
        &self,
        a: i64,
        b: i64,
    ) -> Result<(i64, i64, i64), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `unsigned long long a_ulonglong(in unsigned long long a, inout unsigned long long b, out unsigned long long c)`
    async fn a_ulonglong(
        &self,
        a: u64,
        b: u64,
    ) -> Result<(u64, u64, u64), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `int8 an_int8(in int8 a, inout int8 b, out int8 c)`
    async fn an_int8(&self, a: i8, b: i8) -> Result<(i8, i8, i8), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `float a_float(in float a, inout float b, out float c)`
    async fn a_float(&self, a: f32, b: f32) -> Result<(f32, f32, f32), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `double a_double(in double a, inout double b, out double c)`
    async fn a_double(
        &self,
        a: f64,
        b: f64,
    ) -> Result<(f64, f64, f64), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `long double a_longdouble(in long double a, inout long double b, out long double c)`
    async fn a_longdouble(
        &self,
        a: LongDouble,
        b: LongDouble,
    ) -> Result<(LongDouble, LongDouble, LongDouble), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Money a_fixed(in Rich::Money a, inout Rich::Money b, out Rich::Money c)`
    async fn a_fixed(
        &self,
        a: rich::Money,
        b: rich::Money,
    ) -> Result<(rich::Money, rich::Money, rich::Money), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Base::Colour an_enum(in Base::Colour a, inout Base::Colour b, out Base::Colour c)`
    async fn an_enum(
        &self,
        a: base::Colour,
        b: base::Colour,
    ) -> Result<(base::Colour, base::Colour, base::Colour), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Flags a_bitmask(in Rich::Flags a, inout Rich::Flags b, out Rich::Flags c)`
    async fn a_bitmask(
        &self,
        a: rich::Flags,
        b: rich::Flags,
    ) -> Result<(rich::Flags, rich::Flags, rich::Flags), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Bits a_bitset(in Rich::Bits a, inout Rich::Bits b, out Rich::Bits c)`
    async fn a_bitset(
        &self,
        a: rich::Bits,
        b: rich::Bits,
    ) -> Result<(rich::Bits, rich::Bits, rich::Bits), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Percent a_range(in Rich::Percent a, inout Rich::Percent b, out Rich::Percent c)`
    async fn a_range(
        &self,
        a: rich::Percent,
        b: rich::Percent,
    ) -> Result<(rich::Percent, rich::Percent, rich::Percent), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }
}

/// A servant of interface `Rich::Texts`.
#[derive(Debug, Default)]
pub struct TextsImpl;

impl rich::TextsServant for TextsImpl {
    /// IDL: `string a_string(in string a, inout string b, out string c)`
    async fn a_string(
        &self,
        a: &str,
        b: String,
    ) -> Result<(String, String, String), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `wstring a_wstring(in wstring a, inout wstring b, out wstring c)`
    async fn a_wstring(
        &self,
        a: WStr<'_>,
        b: WString,
    ) -> Result<(WString, WString, WString), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Code a_bounded(in Rich::Code a, inout Rich::Code b, out Rich::Code c)`
    async fn a_bounded(
        &self,
        a: &str,
        b: rich::Code,
    ) -> Result<(rich::Code, rich::Code, rich::Code), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::WCode a_bounded_wide(in Rich::WCode a, inout Rich::WCode b, out Rich::WCode c)`
    async fn a_bounded_wide(
        &self,
        a: WStr<'_>,
        b: rich::WCode,
    ) -> Result<(rich::WCode, rich::WCode, rich::WCode), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }
}

/// A servant of interface `Rich::Collections`.
#[derive(Debug, Default)]
pub struct CollectionsImpl;

impl rich::CollectionsServant for CollectionsImpl {
    /// IDL: `Rich::Data octets(in Rich::Data a, inout Rich::Data b, out Rich::Data c)`
    async fn octets(
        &self,
        a: rich::Data,
        b: rich::Data,
    ) -> Result<(rich::Data, rich::Data, rich::Data), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Longs numbers(in Rich::Longs a, inout Rich::Longs b, out Rich::Longs c)`
    async fn numbers(
        &self,
        a: rich::Longs,
        b: rich::Longs,
    ) -> Result<(rich::Longs, rich::Longs, rich::Longs), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Names words(in Rich::Names a, inout Rich::Names b, out Rich::Names c)`
    async fn words(
        &self,
        a: &[String],
        b: rich::Names,
    ) -> Result<(rich::Names, rich::Names, rich::Names), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Key bounded_octets(in Rich::Key a, inout Rich::Key b, out Rich::Key c)`
    async fn bounded_octets(
        &self,
        a: Bytes,
        b: rich::Key,
    ) -> Result<(rich::Key, rich::Key, rich::Key), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Few bounded_numbers(in Rich::Few a, inout Rich::Few b, out Rich::Few c)`
    async fn bounded_numbers(
        &self,
        a: Seq<i32>,
        b: rich::Few,
    ) -> Result<(rich::Few, rich::Few, rich::Few), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::FewNames bounded_names(in Rich::FewNames a, inout Rich::FewNames b, out Rich::FewNames c)`
    async fn bounded_names(
        &self,
        a: &[String],
        b: rich::FewNames,
    ) -> Result<(rich::FewNames, rich::FewNames, rich::FewNames), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Row small_array(in Rich::Row a, inout Rich::Row b, out Rich::Row c)`
    async fn small_array(
        &self,
        a: &rich::Row,
        b: rich::Row,
    ) -> Result<(rich::Row, rich::Row, rich::Row), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Matrix large_array(in Rich::Matrix a, inout Rich::Matrix b, out Rich::Matrix c)`
    async fn large_array(
        &self,
        a: &rich::Matrix,
        b: rich::Matrix,
    ) -> Result<(rich::Matrix, rich::Matrix, rich::Matrix), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Page boxed_array(in Rich::Page a, inout Rich::Page b, out Rich::Page c)`
    async fn boxed_array(
        &self,
        a: &[String; 400],
        b: rich::Page,
    ) -> Result<(rich::Page, rich::Page, rich::Page), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Stock a_map(in Rich::Stock a, inout Rich::Stock b, out Rich::Stock c)`
    async fn a_map(
        &self,
        a: &rich::Stock,
        b: rich::Stock,
    ) -> Result<(rich::Stock, rich::Stock, rich::Stock), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Anys mixed(in Rich::Anys a, inout Rich::Anys b, out Rich::Anys c)`
    async fn mixed(
        &self,
        a: &[Any],
        b: rich::Anys,
    ) -> Result<(rich::Anys, rich::Anys, rich::Anys), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }
}

/// A servant of interface `Rich::Constructed`.
#[derive(Debug, Default)]
pub struct ConstructedImpl;

impl rich::ConstructedServant for ConstructedImpl {
    /// IDL: `Rich::Point a_struct(in Rich::Point a, inout Rich::Point b, out Rich::Point c)`
    async fn a_struct(
        &self,
        a: &rich::Point,
        b: rich::Point,
    ) -> Result<(rich::Point, rich::Point, rich::Point), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Note a_note(in Rich::Note a, inout Rich::Note b, out Rich::Note c)`
    async fn a_note(
        &self,
        a: &rich::Note,
        b: rich::Note,
    ) -> Result<(rich::Note, rich::Note, rich::Note), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Size a_union(in Rich::Size a, inout Rich::Size b, out Rich::Size c)`
    async fn a_union(
        &self,
        a: &rich::Size,
        b: rich::Size,
    ) -> Result<(rich::Size, rich::Size, rich::Size), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `any an_any(in any a, inout any b, out any c)`
    async fn an_any(&self, a: &Any, b: Any) -> Result<(Any, Any, Any), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `CORBA::TypeCode a_type_code(in CORBA::TypeCode a, inout CORBA::TypeCode b, out CORBA::TypeCode c)`
    async fn a_type_code(
        &self,
        a: &TypeCode,
        b: TypeCode,
    ) -> Result<(TypeCode, TypeCode, TypeCode), SystemException> {
        let _ = (a, b);
        Err(not_implemented())
    }
}

/// A servant of interface `Rich::References`.
#[derive(Debug, Default)]
pub struct ReferencesImpl;

impl rich::ReferencesServant for ReferencesImpl {
    /// IDL: `Rich::Callback a_reference(in Rich::Callback a, inout Rich::Callback b, out Rich::Callback c)`
    async fn a_reference(
        &self,
        a: Option<rich::CallbackRef>,
        b: Option<rich::CallbackRef>,
    ) -> Result<
        (
            Option<rich::CallbackRef>,
            Option<rich::CallbackRef>,
            Option<rich::CallbackRef>,
        ),
        SystemException,
    > {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Callback never_nil(in Rich::Callback a, inout Rich::Callback b, out Rich::Callback c)`
    async fn never_nil(
        &self,
        a: rich::CallbackRef,
        b: rich::CallbackRef,
    ) -> Result<
        (rich::CallbackRef, rich::CallbackRef, rich::CallbackRef),
        SystemException,
    > {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Object an_object(in Object a, inout Object b, out Object c)`
    async fn an_object(
        &self,
        a: Option<ObjectRef>,
        b: Option<ObjectRef>,
    ) -> Result<
        (Option<ObjectRef>, Option<ObjectRef>, Option<ObjectRef>),
        SystemException,
    > {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Thing a_typedef(in Rich::Thing a, inout Rich::Thing b, out Rich::Thing c)`
    async fn a_typedef(
        &self,
        a: Option<rich::Thing>,
        b: Option<rich::Thing>,
    ) -> Result<
        (Option<rich::Thing>, Option<rich::Thing>, Option<rich::Thing>),
        SystemException,
    > {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Money2 a_value(in Rich::Money2 a, inout Rich::Money2 b, out Rich::Money2 c)`
    async fn a_value(
        &self,
        a: Option<Value<rich::Money2>>,
        b: Option<Value<rich::Money2>>,
    ) -> Result<
        (
            Option<Value<rich::Money2>>,
            Option<Value<rich::Money2>>,
            Option<Value<rich::Money2>>,
        ),
        SystemException,
    > {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Boxed a_box(in Rich::Boxed a, inout Rich::Boxed b, out Rich::Boxed c)`
    async fn a_box(
        &self,
        a: Option<Value<rich::Boxed>>,
        b: Option<Value<rich::Boxed>>,
    ) -> Result<
        (
            Option<Value<rich::Boxed>>,
            Option<Value<rich::Boxed>>,
            Option<Value<rich::Boxed>>,
        ),
        SystemException,
    > {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `ValueBase any_value(in ValueBase a, inout ValueBase b, out ValueBase c)`
    async fn any_value(
        &self,
        a: Option<Value<ValueBase>>,
        b: Option<Value<ValueBase>>,
    ) -> Result<
        (Option<Value<ValueBase>>, Option<Value<ValueBase>>, Option<Value<ValueBase>>),
        SystemException,
    > {
        let _ = (a, b);
        Err(not_implemented())
    }

    /// IDL: `Rich::Shown an_abstract(in Rich::Shown a, inout Rich::Shown b, out Rich::Shown c)`
    async fn an_abstract(
        &self,
        a: Option<rich::ShownRef>,
        b: Option<rich::ShownRef>,
    ) -> Result<
        (Option<rich::ShownRef>, Option<rich::ShownRef>, Option<rich::ShownRef>),
        SystemException,
    > {
        let _ = (a, b);
        Err(not_implemented())
    }
}

/// A servant of interface `Rich::Kinds`.
#[derive(Debug, Default)]
pub struct KindsImpl;

impl base::NamedServant for KindsImpl {
    /// IDL: `attribute string name`
    async fn name(&self) -> Result<String, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `attribute string name`
    async fn set_name(&self, value: &str) -> Result<(), SystemException> {
        let _ = (value,);
        Err(not_implemented())
    }
}

impl rich::KindsServant for KindsImpl {
    /// IDL: `readonly attribute long count`
    async fn count(&self) -> Result<i32, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `attribute Rich::Names tags`
    async fn tags(&self) -> Result<rich::Names, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `attribute Rich::Names tags`
    async fn set_tags(&self, value: &[String]) -> Result<(), SystemException> {
        let _ = (value,);
        Err(not_implemented())
    }

    /// IDL: `readonly attribute Rich::Callback owner`
    async fn owner(&self) -> Result<Option<rich::CallbackRef>, rich::kinds::OwnerError> {
        Err(not_implemented().into())
    }

    /// IDL: `attribute double limit`
    async fn limit(&self) -> Result<f64, rich::kinds::LimitError> {
        Err(not_implemented().into())
    }

    /// IDL: `attribute double limit`
    async fn set_limit(&self, value: f64) -> Result<(), rich::kinds::SetLimitError> {
        let _ = (value,);
        Err(not_implemented().into())
    }

    /// IDL: `void nothing()`
    async fn nothing(&self) -> Result<(), SystemException> {
        Err(not_implemented())
    }

    /// IDL: `oneway void ring(in string what, in Rich::Point where)`
    async fn ring(
        &self,
        what: &str,
        r#where: &rich::Point,
    ) -> Result<(), SystemException> {
        let _ = (what, r#where);
        Err(not_implemented())
    }

    /// IDL: `void fails(in long type) raises (Rich::Broke)`
    async fn fails(&self, r#type: i32) -> Result<(), rich::kinds::FailsError> {
        let _ = (r#type,);
        Err(not_implemented().into())
    }

    /// IDL: `long fails_more(in string self, out string match) raises (Rich::Broke, Rich::Refused, Base::Closed)`
    async fn fails_more(
        &self,
        self_: &str,
    ) -> Result<(i32, String), rich::kinds::FailsMoreError> {
        let _ = (self_,);
        Err(not_implemented().into())
    }

    /// IDL: `void four(out long a, out string b, out Rich::Data c, out Rich::Callback d)`
    async fn four(&self) -> Result<rich::kinds::FourReply, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `void upload(in string name, @stream in Rich::Data content)`
    async fn upload(
        &self,
        name: &str,
        content: zorb::ByteStream,
    ) -> Result<(), SystemException> {
        let _ = (name, content);
        Err(not_implemented())
    }

    /// IDL: `void numbers(@stream in Rich::Longs content)`
    async fn numbers(
        &self,
        content: zorb::SeqStream<i32>,
    ) -> Result<(), SystemException> {
        let _ = (content,);
        Err(not_implemented())
    }

    /// IDL: `@stream Rich::Data download(in string name) raises (Rich::Refused)`
    async fn download(
        &self,
        name: &str,
    ) -> Result<zorb::ByteSource, rich::kinds::DownloadError> {
        let _ = (name,);
        Err(not_implemented().into())
    }

    /// IDL: `@stream Rich::Longs series()`
    async fn series(&self) -> Result<zorb::SeqSource<i32>, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `@stream Rich::Names lines()`
    async fn lines(&self) -> Result<zorb::ItemSource<String>, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `string ask(in string a) context ("user", "lang*")`
    async fn ask(
        &self,
        a: &str,
        context: &zorb::Context,
    ) -> Result<String, SystemException> {
        let _ = (a, context);
        Err(not_implemented())
    }
}

/// A servant of interface `Rich::Derived`.
#[derive(Debug, Default)]
pub struct DerivedImpl;

impl base::NamedServant for DerivedImpl {
    /// IDL: `attribute string name`
    async fn name(&self) -> Result<String, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `attribute string name`
    async fn set_name(&self, value: &str) -> Result<(), SystemException> {
        let _ = (value,);
        Err(not_implemented())
    }
}

impl rich::KindsServant for DerivedImpl {
    /// IDL: `readonly attribute long count`
    async fn count(&self) -> Result<i32, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `attribute Rich::Names tags`
    async fn tags(&self) -> Result<rich::Names, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `attribute Rich::Names tags`
    async fn set_tags(&self, value: &[String]) -> Result<(), SystemException> {
        let _ = (value,);
        Err(not_implemented())
    }

    /// IDL: `readonly attribute Rich::Callback owner`
    async fn owner(&self) -> Result<Option<rich::CallbackRef>, rich::kinds::OwnerError> {
        Err(not_implemented().into())
    }

    /// IDL: `attribute double limit`
    async fn limit(&self) -> Result<f64, rich::kinds::LimitError> {
        Err(not_implemented().into())
    }

    /// IDL: `attribute double limit`
    async fn set_limit(&self, value: f64) -> Result<(), rich::kinds::SetLimitError> {
        let _ = (value,);
        Err(not_implemented().into())
    }

    /// IDL: `void nothing()`
    async fn nothing(&self) -> Result<(), SystemException> {
        Err(not_implemented())
    }

    /// IDL: `oneway void ring(in string what, in Rich::Point where)`
    async fn ring(
        &self,
        what: &str,
        r#where: &rich::Point,
    ) -> Result<(), SystemException> {
        let _ = (what, r#where);
        Err(not_implemented())
    }

    /// IDL: `void fails(in long type) raises (Rich::Broke)`
    async fn fails(&self, r#type: i32) -> Result<(), rich::kinds::FailsError> {
        let _ = (r#type,);
        Err(not_implemented().into())
    }

    /// IDL: `long fails_more(in string self, out string match) raises (Rich::Broke, Rich::Refused, Base::Closed)`
    async fn fails_more(
        &self,
        self_: &str,
    ) -> Result<(i32, String), rich::kinds::FailsMoreError> {
        let _ = (self_,);
        Err(not_implemented().into())
    }

    /// IDL: `void four(out long a, out string b, out Rich::Data c, out Rich::Callback d)`
    async fn four(&self) -> Result<rich::kinds::FourReply, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `void upload(in string name, @stream in Rich::Data content)`
    async fn upload(
        &self,
        name: &str,
        content: zorb::ByteStream,
    ) -> Result<(), SystemException> {
        let _ = (name, content);
        Err(not_implemented())
    }

    /// IDL: `void numbers(@stream in Rich::Longs content)`
    async fn numbers(
        &self,
        content: zorb::SeqStream<i32>,
    ) -> Result<(), SystemException> {
        let _ = (content,);
        Err(not_implemented())
    }

    /// IDL: `@stream Rich::Data download(in string name) raises (Rich::Refused)`
    async fn download(
        &self,
        name: &str,
    ) -> Result<zorb::ByteSource, rich::kinds::DownloadError> {
        let _ = (name,);
        Err(not_implemented().into())
    }

    /// IDL: `@stream Rich::Longs series()`
    async fn series(&self) -> Result<zorb::SeqSource<i32>, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `@stream Rich::Names lines()`
    async fn lines(&self) -> Result<zorb::ItemSource<String>, SystemException> {
        Err(not_implemented())
    }

    /// IDL: `string ask(in string a) context ("user", "lang*")`
    async fn ask(
        &self,
        a: &str,
        context: &zorb::Context,
    ) -> Result<String, SystemException> {
        let _ = (a, context);
        Err(not_implemented())
    }
}

impl rich::ShownServant for DerivedImpl {
    /// IDL: `void show()`
    async fn show(&self) -> Result<(), SystemException> {
        Err(not_implemented())
    }
}

impl rich::DerivedServant for DerivedImpl {}

/// A servant of interface `Rich::Here`.
#[derive(Debug, Default)]
pub struct HereImpl;

impl rich::HereServant for HereImpl {
    /// IDL: `Rich::Handle open(in Rich::Handle a)`
    async fn open(&self, a: rich::Handle) -> Result<rich::Handle, SystemException> {
        let _ = (a,);
        Err(not_implemented())
    }

    /// IDL: `void close(in string name) raises (Rich::Broke)`
    async fn close(&self, name: &str) -> Result<(), rich::here::CloseError> {
        let _ = (name,);
        Err(not_implemented().into())
    }
}

/// A servant of interface `Rich::Account`.
#[derive(Debug, Default)]
pub struct RichAccountImpl;

impl rich::AccountServant for RichAccountImpl {
    /// IDL: `void plain()`
    async fn plain(&self) -> Result<(), SystemException> {
        Err(not_implemented())
    }
}

/// A servant of interface `Other::Account`.
#[derive(Debug, Default)]
pub struct OtherAccountImpl;

impl other::AccountServant for OtherAccountImpl {
    /// IDL: `void plain()`
    async fn plain(&self) -> Result<(), SystemException> {
        Err(not_implemented())
    }
}

/// The error of operations that are not implemented yet.
fn not_implemented() -> SystemException {
    SystemException::no_implement()
}
