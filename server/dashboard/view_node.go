package dashboard

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// nodeView is the machine and its agent.
type nodeView struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	RootDir string `json:"rootDir"`
	// Ready: everything was looked at once. Online: the engine answers.
	Ready  bool `json:"ready"`
	Online bool `json:"online"`
	// Actions are what may be done to pods.
	Actions []string `json:"actions"`
}

func viewNode(s server.State, actions []string) nodeView {
	return nodeView{
		Name: s.NodeName, Version: s.Version, RootDir: s.RootDir, Ready: s.Ready, Online: s.Online, Actions: append([]string{}, actions...),
	}
}

// machineView is what the machine has, and is short of.
type machineView struct {
	CPUs       float64         `json:"cpus"`
	Memory     int64           `json:"memory"` // in bytes
	System     string          `json:"system,omitempty"`
	Conditions []conditionView `json:"conditions"`
}

func viewMachine(n *v1.Node) machineView {
	info := n.Status.NodeInfo
	v := machineView{
		CPUs: n.Status.Capacity.Cpu().AsApproximateFloat64(), Memory: n.Status.Capacity.Memory().Value(),
		System:     strings.Join(slices.DeleteFunc([]string{info.OSImage, info.KernelVersion, info.ContainerRuntimeVersion}, func(s string) bool { return s == "" }), " · "),
		Conditions: []conditionView{},
	}
	for _, c := range n.Status.Conditions {
		// All but one of them are true when something is wrong.
		well := v1.ConditionFalse
		if c.Type == v1.NodeReady {
			well = v1.ConditionTrue
		}
		v.Conditions = append(v.Conditions, conditionView{Type: string(c.Type), OK: c.Status == well, Message: cmp.Or(c.Message, c.Reason)})
	}
	return v
}

// sourceView is where pods come from.
type sourceView struct {
	Name    string       `json:"name"`
	State   string       `json:"state"`
	Tone    Tone         `json:"tone"`
	Problem string       `json:"problem,omitempty"`
	Read    int64        `json:"read,omitempty"`
	Origins []originView `json:"origins,omitempty"`
	Skipped []string     `json:"skipped,omitempty"`
}

// originView is one file or URL.
type originView struct {
	Name     string        `json:"name"`
	Holds    []string      `json:"holds,omitempty"`
	Stale    bool          `json:"stale,omitempty"` // the last good version stands in
	Problems []problemView `json:"problems,omitempty"`
}

type problemView struct {
	Tone  Tone   `json:"tone"`
	Place string `json:"place"` // file:line:column
	Text  string `json:"text"`
}

func viewSources(s server.State) []sourceView {
	list := []sourceView{}
	for _, src := range s.Sources {
		v := sourceView{Name: src.ID.String(), State: "read", Tone: Good, Problem: src.Problem, Read: millis(src.Read)}
		switch {
		case src.Problem != "" && !src.Present:
			v.State, v.Tone = "silent; its pods stay as they are", Bad
		case !src.Spoken:
			v.State, v.Tone = "not read yet", Busy
		}
		for _, o := range src.Origins {
			view := viewOrigin(o, s.Conflicts)
			if o.Failed() && v.Tone == Good {
				v.State, v.Tone = "has errors", Bad
			}
			v.Origins = append(v.Origins, view)
		}
		for _, f := range src.Skipped {
			v.Skipped = append(v.Skipped, f.Path+": "+f.Reason)
		}
		list = append(list, v)
	}
	return list
}

func viewOrigin(o pod.OriginStatus, conflicts []pod.Conflict) originView {
	v := originView{Name: o.Origin.Name, Stale: o.Stale}
	for _, k := range o.Pods {
		v.Holds = append(v.Holds, k.String())
	}
	for _, k := range o.Objects {
		v.Holds = append(v.Holds, k.String())
	}
	for _, p := range o.Problems {
		tone := map[pod.Severity]Tone{pod.Error: Bad, pod.Warning: Busy}[p.Severity]
		if tone == "" {
			tone = Faint
		}
		at := pod.Problem{File: p.File, Line: p.Line, Column: p.Column, Severity: p.Severity}.String()
		at, _, _ = strings.Cut(at, ": ")
		text := p.Message
		if p.Field != "" {
			text = p.Field + ": " + text
		}
		v.Problems = append(v.Problems, problemView{Tone: tone, Place: at, Text: text})
	}
	for _, c := range conflicts {
		if c.Loser == o.Origin {
			what := "pod " + c.Key.String()
			if c.Object != (pod.ObjectKey{}) {
				what = c.Object.String()
			}
			v.Problems = append(v.Problems, problemView{Tone: Bad, Place: place(c.Loser, c.Line), Text: what + " is not taken: " + c.Winner.Name + " has it"})
		}
	}
	return v
}

// eventView is one thing that happened.
type eventView struct {
	ID     string `json:"id"`
	Bad    bool   `json:"bad,omitempty"`
	Reason string `json:"reason"`
	Text   string `json:"text"`
	// Pod is namespace/name, "" for the node.
	Pod       string `json:"pod,omitempty"`
	Container string `json:"container,omitempty"`
	Count     int32  `json:"count"`
	First     int64  `json:"first"`
	Last      int64  `json:"last"`
}

func viewEvent(e v1.Event) eventView {
	v := eventView{
		ID: e.Namespace + "/" + e.Name, Bad: e.Type == v1.EventTypeWarning, Reason: e.Reason, Text: e.Message, Count: max(e.Count, 1),
		First: millis(e.FirstTimestamp.Time), Last: millis(e.LastTimestamp.Time),
	}
	if e.InvolvedObject.Kind == "Pod" {
		v.Pod = e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
		_, v.Container, _ = strings.Cut(strings.TrimSuffix(e.InvolvedObject.FieldPath, "}"), "{")
	}
	return v
}
