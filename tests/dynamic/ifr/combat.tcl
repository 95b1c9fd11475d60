# Combat, with what is wrong in its version 0.8.1 mended.
package require combat

# Combat 0.8.1 calls this by the name that it had before.
proc ::Combat::CORBA::ORB::GetObjFromHandle {reference} {
    return [::Combat::CORBA::ORB::GetObjFromRef $reference]
}

# And takes the repository id that this gives for a boolean.
rename ::Combat::SimpleTypeRepository::UpdateTypeInfoForId ::Combat::SimpleTypeRepository::Found
proc ::Combat::SimpleTypeRepository::UpdateTypeInfoForId {id} {
    return [expr {[Found $id] != 0}]
}
