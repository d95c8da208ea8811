// Package doctor looks at a machine and says whether pods can run on it, and
// what to do where they cannot.
//
// [Read] gathers facts and judges nothing; it changes nothing, needs no agent, and
// says of what it may not look at that it does not know. [Diagnose] is a pure
// function over them.
package doctor
