//! zorb against simulated peers: servers with the answers that a test needs, and requests that no zorb client
//! would send.

mod bidirectional;
mod client;
mod elsewhere;
mod forwards;
pub(crate) mod peer;
mod references;
mod server;
mod sun;
mod tao;
mod text;
mod urls;

zorb::idl! {
    module Wire {
        enum Shade { LIGHT, DARK };
        exception Refused { long why; };
        interface Desk {
            long add(in long a, in long b);
            long guarded(in long a) raises (Refused);
            string euro();
            string same(in string text);
            wstring wide_same(in wstring text);
            oneway void label(in wstring text);
            wstring labelled();
            void wide(in wstring text);
            void shade(in Shade shade);
            oneway void note(in long number);
            long noted();
        };
        interface Big : Desk {};
        interface Tower {
            long ring(in Desk desk, in long times);
            void keep(in Desk desk);
        };
    };
}
