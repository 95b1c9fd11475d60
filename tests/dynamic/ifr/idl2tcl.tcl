# Runs Combat's idl2tcl, which arguments are for, with what is wrong in Combat mended.
source [file join [file dirname [info script]] combat.tcl]

source /usr/bin/idl2tcl
