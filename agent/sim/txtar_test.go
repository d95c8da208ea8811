package sim

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect")

// TestScripts plays each scenario of testdata/script: the whole agent on the
// modelled engine, in virtual time. A line is a command, # begins a comment:
//
//	put FILE [SECTION]      replace a manifest by a section of the archive
//	spoil FILE SECTION      write what is no manifest into its place
//	remove FILE             remove a manifest
//	serve STATUS [SECTION]  what the URL answers from now on; 0 is nothing
//	wait DURATION           let time pass
//	kill|restart|destroy POD/CONTAINER   somebody does that to its newest attempt
//	hand stop|start|restart POD[/CONTAINER]   somebody asks the agent for that
//	engine down|live|up     stop the engine, also with live-restore, and start it
//	crash                   kill the agent and start it again
//	agent down|up           kill it, start it
//	lose POD                its files in the root dir are lost
//	forget                  what the sources said last is lost
//	jump DURATION           the wall clock jumps
//	expect SECTION          the pods and their containers are now as written there
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("../../testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				s.startAgent(-1)
				for n, line := range strings.Split(string(ar.Comment), "\n") {
					line, _, _ = strings.Cut(line, "#")
					if words := strings.Fields(line); len(words) > 0 {
						if err := s.command(t, ar, words); err != nil {
							t.Fatalf("line %d: %s: %v", n+1, line, err)
						}
					}
				}
				s.crash()
				for _, v := range s.laws.violations {
					t.Error(v)
				}
			})
			if *update {
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func (s *script) command(t *testing.T, ar *txtar.Archive, words []string) error {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch file := path.Join(folder, arg(1)); words[0] {
	case "put", "spoil":
		name := arg(2)
		if name == "" {
			name = arg(1)
		}
		text, err := section(ar, name)
		if err != nil {
			return err
		}
		s.tree.replace(file, *text)
		if words[0] == "put" {
			s.truth.says(fileOrigin(file), *text)
		}
	case "remove":
		s.tree.remove(file)
		s.truth.gone(fileOrigin(file))
	case "serve":
		return s.serve(ar, arg(1), arg(2))
	case "wait", "jump":
		d, err := time.ParseDuration(arg(1))
		if err != nil {
			return err
		}
		if words[0] == "jump" {
			s.jump(d)
		} else {
			s.wait(d)
		}
	case "kill", "restart", "destroy":
		return s.somebody(words[0], arg(1))
	case "hand":
		name, container, _ := strings.Cut(arg(2), "/")
		return s.byHand(arg(1), pod.Key{Namespace: "default", Name: name + "-node"}, container)
	case "engine":
		switch arg(1) {
		case "up":
			s.engine.Up()
		default:
			s.engine.Down(arg(1) == "live")
		}
	case "room": // for so many pods, from the agent's next start on
		n, err := strconv.ParseInt(arg(1), 10, 64)
		if err != nil {
			return err
		}
		s.laws.room = amounts{n}
	case "crash":
		s.crash()
		s.startAgent(-1)
	case "agent":
		if arg(1) == "up" {
			s.startAgent(-1)
		} else {
			s.crash()
		}
	case "lose":
		return s.lose(arg(1) + "-node")
	case "forget":
		for _, name := range s.disk.names() {
			if strings.HasPrefix(name, "sources/") {
				s.disk.lose(name)
			}
		}
	case "expect":
		want, err := section(ar, arg(1))
		if err != nil {
			return err
		}
		got := s.picture(t)
		if *update {
			return put(ar, arg(1), got)
		}
		if diff := gocmp.Diff(*want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arg(1), diff)
		}
	default:
		return fmt.Errorf("no such command")
	}
	return nil
}

func (s *script) serve(ar *txtar.Archive, status, name string) error {
	var code int
	if _, err := fmt.Sscan(status, &code); err != nil {
		return err
	}
	body := ""
	if name != "" {
		text, err := section(ar, name)
		if err != nil {
			return err
		}
		body = *text
	}
	s.site.serve(code, body, "")
	if code == 200 && body != "" {
		s.truth.says(page, body)
	}
	return nil
}

// lose takes pod.json and state.json of a pod away.
func (s *script) lose(name string) error {
	for _, uid := range s.disk.pods() {
		dir := "pods/" + string(uid)
		if data, err := s.disk.read(dir + "/pod.json"); err == nil && strings.Contains(string(data), name) {
			s.disk.lose(dir + "/pod.json")
			s.disk.lose(dir + "/state.json")
			return nil
		}
	}
	return fmt.Errorf("no record of pod %s", name)
}

// somebody does something to the newest attempt of a container.
func (s *script) somebody(verb, name string) error {
	podName, container, _ := strings.Cut(name, "/")
	id, attempt := "", -1
	for _, c := range s.engine.Containers() {
		if c.Key.Name == podName+"-node" && c.Identity.Name == container && c.Attempt > attempt {
			id, attempt = c.ID, c.Attempt
		}
	}
	done := map[string]func(string) bool{"kill": s.engine.Kill, "restart": s.engine.Restart, "destroy": s.engine.Destroy}[verb]
	if id == "" || !done(id) {
		return fmt.Errorf("no container %s that this can be done to", name)
	}
	return nil
}

// picture says how everything is: a line per pod, with its reason where it has
// one, then its containers; and the folders of no pod that is known.
func (s *script) picture(t *testing.T) string {
	t.Helper()
	snap, err := s.agent.loop.Snapshot(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, v := range snap.Pods {
		fmt.Fprintf(&b, "%s/%s %s", v.Object.Namespace, v.Object.Name, v.Object.Status.Phase)
		if r := v.Object.Status.Reason; r != "" {
			fmt.Fprintf(&b, " %s: %s", r, v.Object.Status.Message)
		}
		if v.Plan.Kept != "" {
			fmt.Fprintf(&b, " (kept: %s)", v.Plan.Kept)
		}
		fmt.Fprintln(&b)
		containers := slices.SortedFunc(slices.Values(v.Containers), func(a, b runtime.Container) int {
			return cmp.Or(strings.Compare(a.Identity.Name, b.Identity.Name), cmp.Compare(a.Attempt, b.Attempt))
		})
		for _, c := range containers {
			fmt.Fprintf(&b, "  %s/%d %s", c.Identity.Name, c.Attempt, c.State)
			if c.State == runtime.Exited {
				fmt.Fprintf(&b, " %d", c.ExitCode)
			}
			fmt.Fprintln(&b)
		}
		for _, c := range slices.Concat(v.Object.Status.InitContainerStatuses, v.Object.Status.ContainerStatuses) {
			if w := c.State.Waiting; w != nil {
				fmt.Fprintf(&b, "  %s waits: %s\n", c.Name, w.Reason)
			}
			if c.State.Running != nil && !c.Ready {
				fmt.Fprintf(&b, "  %s is not ready\n", c.Name)
			}
		}
	}
	for _, uid := range s.disk.pods() {
		if !slices.ContainsFunc(snap.Pods, func(v reconcile.View) bool {
			return v.Object.UID == uid || slices.ContainsFunc(v.Containers, func(c runtime.Container) bool { return c.UID == uid })
		}) {
			fmt.Fprintf(&b, "folder of nobody: %s\n", uid)
		}
	}
	for _, c := range snap.Conflicts {
		name := fmt.Stringer(c.Key)
		if c.Object != (pod.ObjectKey{}) {
			name = c.Object
		}
		fmt.Fprintf(&b, "conflict over %s: %s keeps it, %s does not have it\n", name, c.Winner, c.Loser)
	}
	for _, src := range snap.Sources {
		for _, o := range src.Origins {
			for _, p := range o.Problems {
				fmt.Fprintln(&b, p)
			}
		}
	}
	return b.String()
}

func section(ar *txtar.Archive, name string) (*string, error) {
	for _, f := range ar.Files {
		if f.Name == name {
			text := string(f.Data)
			return &text, nil
		}
	}
	return nil, fmt.Errorf("the archive has no section %q", name)
}

func put(ar *txtar.Archive, name, text string) error {
	for i, f := range ar.Files {
		if f.Name == name {
			ar.Files[i].Data = []byte(text)
			return nil
		}
	}
	return fmt.Errorf("the archive has no section %q", name)
}
