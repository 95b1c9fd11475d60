# Calls an object by what the interface repository says of it, or a file that idl2tcl wrote: arguments are an IOR, options of the ORB, and `--types FILE`.
source [file join [file dirname [info script]] combat.tcl]

set rest [eval corba::init [lrange $argv 1 end]]
if {[lindex $rest 0] == "--types"} {
    source [lindex $rest 1]
}
set account [corba::string_to_object [lindex $argv 0]]

puts "name [$account name]"
puts "balance [$account balance]"
puts "deposit [$account deposit 2.5]"
$account balance 7
puts "balance [$account balance]"
set entry {who Ada amounts {1 2 3} kind giro}
puts "swap [$account swap entry] $entry"
if {[catch {$account withdraw 100} oops]} {
    puts "raised $oops"
}
if {[catch {$account nonsense} oops]} {
    puts "refused"
}
