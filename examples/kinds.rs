//! Kinds of invocation: calls that are awaited, calls that are sent now and awaited later, and one call to
//! many objects with a common deadline.
//!
//! ```text
//! cargo run --example kinds
//! ```

use zorb::fan_out;
use zorb::prelude::*;

zorb::idl! {
    module Weather {
        interface Station {
            readonly attribute string name;
            double temperature();
        };
    };
}

use weather::{StationRef, StationServant};

/// A remote station, which answers slowly.
struct Station {
    name: &'static str,
    temperature: f64,
    takes: Duration,
}

impl StationServant for Station {
    async fn name(&self) -> Result<String, SystemException> {
        Ok(self.name.to_owned())
    }

    async fn temperature(&self) -> Result<f64, SystemException> {
        tokio::time::sleep(self.takes).await;
        Ok(self.temperature)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    let client = Orb::builder().build().await?;
    let mut stations: Vec<StationRef> = Vec::new();
    for (name, temperature, milliseconds) in [("Oslo", -3.5, 20), ("Lima", 21.0, 40), ("Vostok", -66.0, 5000)]
    {
        let takes = Duration::from_millis(milliseconds);
        let station: StationRef = server.activate(Station { name, temperature, takes })?;
        stations.push(client.resolve(&station.to_string()).await?);
    }
    let [oslo, lima, _] = &*stations else { return Err("there are three stations".into()) };

    // Awaited at once.
    println!("{} measures {} degrees", oslo.name().await?, oslo.temperature().await?);

    // Sent now, awaited later. Code in between runs while the station measures.
    let temperature = lima.temperature().deferred();
    let name = lima.name().await?;
    println!("{name} measures {} degrees", temperature.await?);

    // All of them, each result as it arrives. Calls without an answer after half a second are cancelled.
    let mut answers = fan_out(&stations, Duration::from_millis(500), |station: StationRef| async move {
        station.temperature().await
    });
    while let Some(answer) = answers.next().await {
        match answer.result {
            Ok(temperature) => println!("station {}: {temperature} degrees", answer.index),
            Err(error) => println!("station {}: {error}", answer.index),
        }
    }

    client.shutdown().await;
    server.shutdown().await;
    Ok(())
}
