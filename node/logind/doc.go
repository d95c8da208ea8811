// Package logind hears from systemd's login manager that the machine is about to go
// down, and holds that up while there is something to end.
//
// A lock of mode "delay" holds a shutdown up for InhibitDelayMaxSec of logind.conf at
// the most; this package does not change what is set there.
package logind
