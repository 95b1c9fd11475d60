//! Calls with arguments and results as JSON.

use zorb::dynamic::{DynamicException, Request};
use zorb::testing::pair;

use super::meter::interface;
use super::pairs::served;

#[tokio::test]
async fn a_call_takes_json_and_gives_json() {
    let orbs = pair();
    let interface = interface();
    for dynamic in [false, true] {
        let (meter, _) = served(&orbs, dynamic).await;
        let call = async |operation: &str, arguments: &str| {
            let answered = meter.call_json(&interface, operation, arguments).await;
            answered.unwrap_or_else(|error| format!("! {}", error.to_json().unwrap()))
        };
        assert_eq!(call("_get_title", "{}").await, r#"{"$result":"meter"}"#);
        assert_eq!(call("mean", r#"{"a": 1, "b": "2", "c": 6.0}"#).await, r#"{"$result":3.0}"#);
        assert_eq!(
            call("divide", r#"{"count": 7, "b": 4, "a": 6}"#).await,
            r#"{"$result":1.5,"remark":"6/4","count":8}"#
        );
        assert_eq!(
            call("divide", r#"{"a": 1, "b": 0, "count": 7}"#).await,
            r#"! {"$exception":"IDL:Metering/Refused:1.0","why":"zero","code":7}"#
        );
        let readings =
            r#"{"given":[{"sensor":2,"value":0.5,"name":"b"},{"sensor":1,"value":0.25,"name":"a"}]}"#;
        assert_eq!(
            call("sorted", readings).await,
            r#"{"$result":[{"sensor":1,"value":0.25,"name":"a"},{"sensor":2,"value":0.5,"name":"b"}]}"#
        );
        assert_eq!(call("_set_level", r#"{"value": -3}"#).await, "{}");
        assert_eq!(call("note", r#"{"text": "by \"JSON\""}"#).await, "{}");
        assert_eq!(call("notes", "{}").await, r#"{"$result":"by \"JSON\""}"#);
        assert_eq!(call("bulk", r#"{"data": "AQID"}"#).await, r#"{"$result":"AQID"}"#);
        assert_eq!(call("other", r#"{"given": null}"#).await, r#"{"$result":null}"#);
        let any = r#"{"$type":"long","value":5}"#;
        assert_eq!(call("kept", &format!(r#"{{"given": {any}}}"#)).await, format!(r#"{{"$result":{any}}}"#));
        let unknown = call("title", "{}").await;
        assert!(
            unknown.starts_with(r#"! {"$exception":"IDL:omg.org/CORBA/BAD_OPERATION:1.0","minor":"#)
                && unknown.contains(r#","completed":"COMPLETED_NO""#),
            "{unknown}"
        );
    }
}

#[tokio::test]
async fn json_that_does_not_fit_is_told_by_its_place() {
    let orbs = pair();
    let interface = interface();
    let (meter, _) = served(&orbs, false).await;
    for (operation, arguments, place) in [
        ("mean", r#"{"a": 1, "b": 2}"#, "c"),
        ("mean", r#"{"a": 1, "b": 2, "c": 3, "d": 4}"#, "d"),
        ("mean", r#"{"a": 1, "b": -2, "c": 3}"#, "b:"),
        ("divide", r#"{"a": 1, "b": 2, "count": 3, "remark": ""}"#, "remark"),
        (
            "sorted",
            r#"{"given": [{"sensor": 1, "value": 1, "name": "a"}, {"sensor": 2, "value": "x", "name": "b"}]}"#,
            "given[1].value",
        ),
        ("sorted", r#"{"given": {}}"#, "given"),
        ("mean", "[", "line 1"),
        ("mean", "7", ""),
    ] {
        let request = Request::of(&meter, &interface, operation).unwrap();
        let error = request.with_json(arguments).unwrap_err();
        assert_eq!(error.completed, zorb::CompletionStatus::No);
        assert!(error.to_string().contains(place), "{arguments}: {error}");
    }
    let error = meter.call_json(&interface, "mean", "{}").await.unwrap_err();
    assert!(matches!(error, DynamicException::System(_)));
}
