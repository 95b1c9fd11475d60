//! IDL that a build script compiles: `build.rs` generates `shop.rs`, which is included here.
//!
//! ```text
//! cargo run -p build-script-example
//! ```

use zorb::prelude::*;

zorb::include_idl!("shop");

struct Counter;

impl shop::CounterServant for Counter {
    async fn buy(&self, goods: &[String]) -> Result<common::Money, SystemException> {
        Ok(common::Money { cents: goods.iter().map(|name| name.len() as i64 * 100).sum() })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{} cents", costs(&["tea".into(), "milk".into()]).await?);
    Ok(())
}

async fn costs(goods: &[String]) -> Result<i64, SystemException> {
    let counter: shop::CounterRef = zorb::testing::local(Counter);
    Ok(counter.buy(goods).await?.cents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_the_build_script_made_runs() -> Result<(), SystemException> {
        assert_eq!(costs(&["tea".into(), "milk".into()]).await?, 700);
        let four = ["a", "b", "c", "d"].map(String::from);
        assert!(costs(&four).await.is_err(), "the bound is that of the build script's macro");
        assert_eq!(shop::CounterRef::REPOSITORY_ID, "IDL:shop.example.org/Shop/Counter:1.0");
        Ok(())
    }
}
