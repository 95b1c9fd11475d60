// What rustc suggests names types by paths that resolve, also of definitions at file level.
idl_macros::idl! {
    enum Shade { LIGHT, DARK };
    struct Point { long x; long y; };
    interface Counter { Point at(in Shade s); };
    module Inner { struct Deep { long x; }; };
}

mod user {
    fn a(p: Point) {}
    fn b(c: CounterRef) {}
    fn c() { let _ = Shade::Light; }
    fn d(d: Deep) {}
}

struct Mine;

impl CounterServant for Mine {
    async fn at(&self, s: i32) -> Result<Point, zorb::SystemException> {
        Ok(s)
    }
}

fn main() {
    let _: Shade = Point { x: 1, y: 2 };
}
