package stream

// HungUp is what a connection is asked of which nothing is read.
var HungUp = hungUp
