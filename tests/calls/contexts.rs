//! Operations with a `context` clause: strings of the caller after the arguments.

use std::sync::Mutex;

use zorb::prelude::*;
use zorb::{Context, testing};

zorb::idl! {
    module Desk {
        exception Unknown { string user; };
        interface Clerk {
            string who(in long number, inout string text) context ("user", "net.*");
            void only(in string _context) raises (Unknown) context ("user");
            oneway void note() context ("note*");
            string noted();
        };
        interface Chief : Clerk { };
        local interface Near { string who() context ("user"); };
    };
}

fn shown(context: &Context) -> String {
    context.iter().map(|(name, value)| format!("{name}={value};")).collect()
}

#[derive(Default)]
struct Clerk(Mutex<String>);

impl desk::ClerkServant for Clerk {
    async fn who(
        &self,
        number: i32,
        text: String,
        context: &Context,
    ) -> Result<(String, String), SystemException> {
        Ok((shown(context), format!("{text}{number}")))
    }
    async fn only(&self, context: &str, context_: &Context) -> Result<(), desk::clerk::OnlyError> {
        match context_.get("user") {
            Some("ann") if context == "desk" => Ok(()),
            user => Err(desk::Unknown { user: user.unwrap_or_default().to_owned() }.into()),
        }
    }
    async fn note(&self, context: &Context) -> Result<(), SystemException> {
        self.0.lock().unwrap().push_str(&shown(context));
        Ok(())
    }
    async fn noted(&self) -> Result<String, SystemException> {
        Ok(self.0.lock().unwrap().clone())
    }
}

impl desk::ChiefServant for Clerk {}

struct Near;

impl desk::NearServant for Near {
    async fn who(&self, context: &Context) -> Result<String, SystemException> {
        Ok(shown(context))
    }
}

async fn check(chief: &desk::ChiefRef) {
    let context = Context::new()
        .with("user", "ann")
        .with("user.more", "no")
        .with("net.host", "h")
        .with("net.port", "7")
        .with("notes", "n");
    let (who, text) = chief.who(5, "x".to_owned(), &context).await.unwrap();
    assert_eq!((who.as_str(), text.as_str()), ("net.host=h;net.port=7;user=ann;", "x5"));
    let (who, _) = chief.who(5, String::new(), &Context::new()).await.unwrap();
    assert_eq!(who, "");
    chief.only("desk", &context).await.unwrap();
    match chief.only("desk", &Context::new().with("user", "bob")).await {
        Err(desk::clerk::OnlyError::Unknown(unknown)) => assert_eq!(unknown.user, "bob"),
        other => panic!("{other:?}"),
    }
    chief.note(&context).await.unwrap();
    chief.note(&Context::new()).await.unwrap();
    assert_eq!(chief.noted().await.unwrap(), "notes=n;");
}

// clause: giop.request.context_strings
#[tokio::test]
async fn a_context_travels_behind_the_arguments() {
    let testing::Pair { client, server, .. } = &testing::pair();
    let chief: desk::ChiefRef = server.activate_named("Chief", Clerk::default()).unwrap();
    let chief: desk::ChiefRef = client.resolve(&chief.to_string()).await.unwrap();
    check(&chief).await;
}

#[tokio::test]
async fn inside_of_a_process_the_servant_sees_no_more() {
    check(&testing::local::<desk::ChiefRef, _>(Clerk::default())).await;
    let near = desk::NearRef::of(Near);
    let context = Context::new().with("user", "ann").with("other", "x");
    assert_eq!(near.who(&context).await.unwrap(), "user=ann;");
}
