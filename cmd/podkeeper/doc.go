// Command podkeeper is the agent and its command line in one binary: `podkeeper
// run` is the agent, every other command asks it over its local socket, or works
// on files without it.
//
// There is one file per command. What they share is in files named for it:
//
//   - output.go has the rules of what is written where, and holds them;
//   - exit.go has every exit code, and how errors are told to people;
//   - location.go says which agent is meant (--root-dir, --socket);
//   - settings.go turns flags and a kubelet's configuration file into agent.Config;
//   - podstatus.go and podname.go speak of pods as kubectl does.
//
// A command decides nothing about pods: what runs, what waits and why is in
// [server.State], and is only rendered here. Nothing here changes the machine but
// `run` and `delete --all`.
package main
