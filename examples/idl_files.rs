//! IDL in files: an include, a macro from outside, and definitions that two modules share.
//!
//! ```text
//! cargo run --example idl_files
//! ```

use zorb::prelude::*;

/// Shared definitions, compiled once.
mod money {
    zorb::idl!("examples/idl/common/money.idl");
}

zorb::idl!(
    "examples/idl/library.idl",
    include = ["examples/idl/common"],
    define = ["FINE_PER_DAY=30"],
    extern("::Common" = crate::money::common),
);

struct Shelf(Vec<library::Book>);

impl library::ShelfServant for Shelf {
    async fn find(&self, by: &str) -> Result<library::Books, SystemException> {
        Ok(self.0.iter().filter(|book| book.title.contains(by)).cloned().collect())
    }

    async fn fine(&self, days: i32) -> Result<money::common::Money, SystemException> {
        Ok(money::common::Money { cents: i64::from(days) * i64::from(library::FINE) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let book =
        |title: &str, cents| library::Book { title: title.into(), value: money::common::Money { cents } };
    let shelf = Shelf(vec![book("The Hobbit", 1200), book("Hard Times", 900)]);

    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    let shelf: library::ShelfRef = server.activate_named("Shelf", shelf)?;
    let client = Orb::builder().build().await?;
    let shelf: library::ShelfRef = client.resolve(&shelf.to_string()).await?;
    for book in shelf.find("Times").await? {
        println!("{}: {} cents", book.title, book.value.cents);
    }
    println!("two days late: {} cents", shelf.fine(2).await?.cents);
    server.shutdown().await;
    Ok(())
}
