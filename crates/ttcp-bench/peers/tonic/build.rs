//! Writes the services of the bench contract. Their messages are in `src/lib.rs`.

use tonic_build::manual::{Builder, Method, Service};

fn main() {
    let method = |name: &str, route: &str, input: &str, output: &str| {
        Method::builder()
            .name(name)
            .route_name(route)
            .input_type(format!("crate::{input}"))
            .output_type(format!("crate::{output}"))
            .codec_path("crate::BulkCodec")
    };
    let mut ttcp = Service::builder().name("Ttcp").package("ttcp");
    // gRPC has no oneway: a stream of the client's that is answered once, at its end, comes nearest.
    for (name, kind) in [
        ("short", "Short"),
        ("long", "Long"),
        ("double", "Double"),
        ("char", "Char"),
        ("octet", "Octet"),
        ("struct", "Struct"),
    ] {
        let stream =
            method(&format!("send_{name}_seq"), &format!("Send{kind}Seq"), &format!("{kind}Seq"), "Count");
        ttcp = ttcp.method(stream.client_streaming().build());
    }
    ttcp = ttcp.method(method("ping", "Ping", "Empty", "Empty").build());
    ttcp = ttcp.method(method("echo_octets", "EchoOctets", "OctetSeq", "OctetSeq").build());
    ttcp = ttcp.method(method("echo_structs", "EchoStructs", "StructSeq", "StructSeq").build());
    let mut wide = Service::builder().name("Wide").package("ttcp");
    for i in 0..100 {
        wide = wide.method(method(&format!("m{i:03}"), &format!("M{i:03}"), "Empty", "Empty").build());
    }
    Builder::new().compile(&[ttcp.build(), wide.build()]);
}
