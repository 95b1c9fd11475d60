//! `fixed`: types, constants, and values over the wire.

use crate::octets::round_trip;
use crate::orbs::{activate, collocated, run};
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};
use idl_macros::idl;
use zorb::{Fixed, SystemException};

idl! {
    module Bank {
        typedef fixed<9, 2> Money;
        typedef fixed<31, 31> Share;
        typedef Money Prices[2];
        typedef sequence<Money> Column;

        const fixed RATE = 0.0825d;
        const fixed THIRD = 1d / 3D;
        const fixed POINTS = .5d + 5.d - 1.25d * 2d;
        const fixed WHOLE = 100d;
        const Money LIMIT = -(1000d + RATE * 100D);
        const Money NOTHING = 0.00d;

        struct Line { short number; Money price; octet count; fixed<4, 4> discount; };
        struct Sheet {
            Column prices; Prices two; sequence<fixed<1, 0>, 3> few; Line lines[2]; fixed<31, 0> total; boolean done;
            Money many[300];
        };
        union Amount switch (boolean) { case TRUE: Money money; case FALSE: Share share; };
        exception Refused { Money missing; };

        interface Account {
            attribute Money balance;
            Money withdraw(in Money amount, inout Share share, out Column history) raises (Refused);
            Money sum(in Column prices, in Sheet sheet, in Prices two);
        };
    };
}

use bank::*;

fn money(text: &str) -> Money {
    text.parse().unwrap()
}

fn sheet() -> Sheet {
    let line = Line { number: 1, price: money("19.90"), count: 3, discount: "0.25".parse().unwrap() };
    Sheet {
        prices: vec![money("1.5"), Money::MIN, Money::ZERO],
        two: [money("-0.01"), Money::MAX],
        few: vec![Fixed::MAX, Fixed::MIN].try_into().unwrap(),
        lines: [line.clone(), Line { number: 2, ..line }],
        total: Fixed::MAX,
        done: true,
        many: Box::new([money("7"); 300]),
    }
}

#[test]
fn constants_have_the_digits_of_their_values() {
    let rate: Fixed<4, 4> = RATE;
    assert_eq!(rate.to_string(), "0.0825");
    let third: Fixed<31, 31> = THIRD;
    assert_eq!(third.to_string(), format!("0.{}", "3".repeat(31)));
    let points: Fixed<1, 0> = POINTS;
    assert_eq!(points.to_string(), "3");
    let whole: Fixed<3, 0> = WHOLE;
    assert_eq!(whole.to_string(), "100");
    const { assert!(LIMIT.unscaled() == -100_825 && NOTHING.is_zero()) };
    assert_eq!(LIMIT, money("-1008.25"));
}

#[test]
fn values_come_back_in_both_orders() {
    round_trip(&money("-1234567.89"));
    round_trip(&sheet());
    round_trip(&Amount::Money(money("5")));
    round_trip(&Amount::Share(Fixed::MAX));
    round_trip(&Refused { missing: money("0.5") });
    let mut e = Encoder::new(ByteOrder::Little, Version::V1_2);
    sheet().lines[0].encode(&mut e).unwrap();
    assert_eq!(e.into_bytes()[..], [1, 0, 0x00, 0x00, 0x01, 0x99, 0x0c, 3, 0x02, 0x50, 0x0c]);
}

#[test]
fn what_has_more_digits_than_its_type_is_refused() {
    let octets = [0x12, 0x34, 0x5c];
    let decoded = Fixed::<4, 4>::decode(&mut Decoder::new(&octets, ByteOrder::Big, Version::V1_2));
    assert_eq!(decoded.map_err(|error| error.kind), Err(DecodeErrorKind::InvalidFixed));
}

#[test]
fn the_default_is_zero_and_values_can_be_hashed() {
    fn hashable<T: Eq + std::hash::Hash>() {}
    hashable::<Sheet>();
    assert_eq!(Line::default(), Line { number: 0, price: Money::ZERO, count: 0, discount: Fixed::ZERO });
    assert_eq!(Amount::default(), Amount::Money(Money::ZERO));
}

struct MyAccount;

impl AccountServant for MyAccount {
    async fn balance(&self) -> Result<Money, SystemException> {
        Ok(LIMIT)
    }

    async fn set_balance(&self, value: Money) -> Result<(), SystemException> {
        assert_eq!(value, money("3.5"));
        Ok(())
    }

    async fn withdraw(
        &self,
        amount: Money,
        share: Share,
    ) -> Result<(Money, Share, Column), account::WithdrawError> {
        if amount.is_negative() {
            return Err(Refused { missing: amount }.into());
        }
        Ok((-amount, share / 2, vec![amount]))
    }

    async fn sum(&self, prices: &[Money], sheet: &Sheet, two: &Prices) -> Result<Money, SystemException> {
        Ok(prices.iter().chain(two).sum::<Money>() + sheet.lines[0].price)
    }
}

#[test]
fn calls_pass_numbers_by_value() {
    let remote: AccountRef = activate(MyAccount);
    for account in [collocated(&remote), remote] {
        run(async {
            assert_eq!(account.balance().await.unwrap(), LIMIT);
            account.set_balance(money("3.5")).await.unwrap();
            let half: Share = "0.5".parse().unwrap();
            let (result, share, history) = account.withdraw(money("2"), half).await.unwrap();
            assert_eq!((result, share, history), (money("-2"), half / 2, vec![money("2")]));
            let error = account.withdraw(money("-1"), half).await.unwrap_err();
            assert!(
                matches!(error, account::WithdrawError::Refused(Refused { missing }) if missing == money("-1"))
            );
            let sum = account.sum(&[money("1"), money("2")], &sheet(), &[money("3"), money("4")]).await;
            assert_eq!(sum.unwrap(), money("29.90"));
        });
    }
}
