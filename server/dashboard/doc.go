// Package dashboard is a page about the pods of one agent, for a person with a
// browser on the machine.
//
// It is served by the command, not by the agent: everything it shows it asks for
// through [Answers], as every other command does, so an agent that nobody looks at
// has nothing to do for it.
//
// Who may look is decided in three steps, each of which is enough against one
// kind of stranger:
//
//	Host, Origin,      pages of other sites, other ports, and names that were
//	Sec-Fetch-Site     made to mean this machine (DNS rebinding)
//	the cookie         users and programs of the machine: there is one session,
//	                   had for a token that is printed once and good once
//	the key            servers on other ports of this address, which the browser
//	                   gives the cookie too: data and actions want this header as
//	                   well, which only scripts of this very origin know
//
// The token comes in the fragment of the printed address, which browsers send to
// nobody, and goes back in the body of one request.
//
// What the page shows of a pod is listed in view.go, rather than what it does not:
// values of variables, commands, annotations and contents of volumes are not there.
package dashboard
