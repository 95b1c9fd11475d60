# rich.idl as Combat has definitions: a kind, id, name and version, then what the kind has. A name with nothing behind it is a declaration.
package require combat

combat::ir add {{
    module {IDL:example.org/Rich:1.0 Rich 1.0} {
        {const {IDL:example.org/Rich/DEPTH:1.0 DEPTH 1.0} short -3}
        {const {IDL:example.org/Rich/LIMIT:1.0 LIMIT 1.0} {unsigned long} 12}
        {const {IDL:example.org/Rich/GREETING:1.0 GREETING 1.0} string hello}
        {const {IDL:example.org/Rich/HALF:1.0 HALF 1.0} double 0.5}
        {const {IDL:example.org/Rich/YES:1.0 YES 1.0} boolean 1}
        {const {IDL:example.org/Rich/LETTER:1.0 LETTER 1.0} char z}
        {typedef {IDL:example.org/Rich/Name:1.0 Name 1.0} {string 16}}
        {typedef {IDL:example.org/Rich/Names:1.0 Names 1.0} {sequence IDL:example.org/Rich/Name:1.0 8}}
        {typedef {IDL:example.org/Rich/Grid:1.0 Grid 1.0} {array {array long 3} 2}}
        {typedef {IDL:example.org/Rich/Price:1.0 Price 1.0} {fixed 7 2}}
        {typedef {IDL:example.org/Rich/Wide:1.0 Wide 1.0} {wstring 5}}
        {enum {IDL:example.org/Rich/Kind:1.0 Kind 1.0} {savings giro}}
        {const {IDL:example.org/Rich/USUAL:1.0 USUAL 1.0} IDL:example.org/Rich/Kind:1.0 giro}
        {struct {IDL:example.org/Rich/Entry:1.0 Entry 1.0}}
        {struct {IDL:example.org/Rich/Entry:1.0 Entry 1.0} {
            {who IDL:example.org/Rich/Name:1.0} {amount double} {codes {array long 4}}
            {more {sequence IDL:example.org/Rich/Entry:1.0}}
            {price IDL:example.org/Rich/Price:1.0} {note wstring} {serial {unsigned long long}}
        } {}}
        {union {IDL:example.org/Rich/Choice:1.0 Choice 1.0} IDL:example.org/Rich/Kind:1.0 {
            {savings rate long} {(default) cells IDL:example.org/Rich/Grid:1.0}
        } {}}
        {union {IDL:example.org/Rich/Number:1.0 Number 1.0} long {
            {1 few string} {2 few string} {-3 less octet}
        } {}}
        {struct {IDL:example.org/Rich/Tree:1.0 Tree 1.0}}
        {typedef {IDL:example.org/Rich/Trees:1.0 Trees 1.0} {sequence IDL:example.org/Rich/Tree:1.0}}
        {struct {IDL:example.org/Rich/Tree:1.0 Tree 1.0} {{kids IDL:example.org/Rich/Trees:1.0}} {}}
        {exception {IDL:example.org/Rich/Overdrawn:1.0 Overdrawn 1.0} {{missing double}} {}}
        {exception {IDL:example.org/Rich/Closed:1.0 Closed 1.0} {} {}}
        {native {IDL:example.org/Rich/Handle:1.0 Handle 1.0}}
        {interface {IDL:example.org/Rich/Party:1.0 Party 1.0} {} {
            {attribute {IDL:example.org/Rich/Party/called:1.0 called 1.0} IDL:example.org/Rich/Name:1.0 readonly}
        }}
        {interface {IDL:example.org/Rich/Account:1.0 Account 1.0} IDL:example.org/Rich/Party:1.0 {
            {const {IDL:example.org/Rich/Account/DAYS:1.0 DAYS 1.0} long 30}
            {struct {IDL:example.org/Rich/Account/Inner:1.0 Inner 1.0} {{bit octet}} {}}
            {exception {IDL:example.org/Rich/Account/Locked:1.0 Locked 1.0} {
                {lock IDL:example.org/Rich/Account/Inner:1.0}
            } {}}
            {attribute {IDL:example.org/Rich/Account/balance:1.0 balance 1.0} double}
            {attribute {IDL:example.org/Rich/Account/tag:1.0 tag 1.0} any}
            {operation {IDL:example.org/Rich/Account/deposit:1.0 deposit 1.0} double {{in sum double}} {
                IDL:example.org/Rich/Overdrawn:1.0 IDL:example.org/Rich/Account/Locked:1.0
            }}
            {operation {IDL:example.org/Rich/Account/swap:1.0 swap 1.0} IDL:example.org/Rich/Names:1.0 {
                {inout entry IDL:example.org/Rich/Entry:1.0} {out choice IDL:example.org/Rich/Choice:1.0} {in whom Object}
            } {}}
            {operation {IDL:example.org/Rich/Account/note:1.0 note 1.0} void {{in what TypeCode}} {} oneway}
        }}
        {interface {IDL:example.org/Rich/Watched:1.0 Watched 1.0} {} {
            {attribute {IDL:example.org/Rich/Watched/seen:1.0 seen 1.0} boolean}
        }}
        {abstractinterface {IDL:example.org/Rich/Shape:1.0 Shape 1.0} {} {
            {operation {IDL:example.org/Rich/Shape/draw:1.0 draw 1.0} void {} {}}
        }}
        {abstractinterface {IDL:example.org/Rich/Round:1.0 Round 1.0} IDL:example.org/Rich/Shape:1.0 {
            {attribute {IDL:example.org/Rich/Round/radius:1.0 radius 1.0} float readonly}
        }}
        {localinterface {IDL:example.org/Rich/Cursor:1.0 Cursor 1.0} {} {
            {operation {IDL:example.org/Rich/Cursor/next:1.0 next 1.0} boolean {} {}}
        }}
        {interface {IDL:example.org/Rich/Joint:1.0 Joint 1.0} {
            IDL:example.org/Rich/Account:1.0 IDL:example.org/Rich/Watched:1.0
        } {}}
        {valuebox {IDL:example.org/Rich/Text:1.0 Text 1.0} string}
        {valuetype {IDL:example.org/Rich/Printed:1.0 Printed 1.0} 0 {} {} {} abstract {
            {attribute {IDL:example.org/Rich/Printed/lines:1.0 lines 1.0} long readonly}
            {operation {IDL:example.org/Rich/Printed/print:1.0 print 1.0} string {{in twice boolean}} {}}
        }}
        {valuetype {IDL:example.org/Rich/Money:1.0 Money 1.0} 0 IDL:example.org/Rich/Printed:1.0 IDL:example.org/Rich/Party:1.0 {
            {create {{count long} {coin string}}} {none {}}
        } {} {
            {valuemember {IDL:example.org/Rich/Money/units:1.0 units 1.0} long public}
            {valuemember {IDL:example.org/Rich/Money/currency:1.0 currency 1.0} string private}
            {operation {IDL:example.org/Rich/Money/add:1.0 add 1.0} void {
                {in other IDL:example.org/Rich/Money:1.0}
            } IDL:example.org/Rich/Overdrawn:1.0}
            {attribute {IDL:example.org/Rich/Money/owners:1.0 owners 1.0} IDL:example.org/Rich/Names:1.0}
        }}
        {valuetype {IDL:example.org/Rich/Coin:1.0 Coin 1.0} IDL:example.org/Rich/Money:1.0 {} {} {} truncatable {
            {valuemember {IDL:example.org/Rich/Coin/metal:1.0 metal 1.0} IDL:example.org/Rich/Kind:1.0 public}
        }}
        {valuetype {IDL:example.org/Rich/Secret:1.0 Secret 1.0} 0 {} {} {} custom {
            {valuemember {IDL:example.org/Rich/Secret/sealed:1.0 sealed 1.0} {sequence octet} private}
            {typedef {IDL:example.org/Rich/Secret/Many:1.0 Many 1.0} {sequence IDL:example.org/Rich/Secret:1.0}}
        }}
    }
} {
    module {IDL:example.org/Rich:1.0 Rich 1.0} {
        {module {IDL:example.org/Rich/Deep:1.0 Deep 1.0} {
            {interface {IDL:example.org/Rich/Deep/Later:1.0 Later 1.0}}
            {typedef {IDL:example.org/Rich/Deep/Laters:1.0 Laters 1.0} {sequence IDL:example.org/Rich/Deep/Later:1.0}}
            {interface {IDL:example.org/Rich/Deep/Later:1.0 Later 1.0} {} {
                {operation {IDL:example.org/Rich/Deep/Later/all:1.0 all 1.0} IDL:example.org/Rich/Deep/Laters:1.0 {} {}}
            }}
        }}
    }
} {interface {IDL:example.org/Outside:1.0 Outside 1.0} {} {}}}
