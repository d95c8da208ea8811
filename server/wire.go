package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// compactType is the form of a State that a [Client] asks for: a line of JSON in which the
// pods lack their objects, and then these, in the same order, as a v1.PodList of protobuf.
// What encoding/json prepares before it reads its first v1.Pod takes a program that has
// just started longer than all else that it does. Everybody else gets JSON.
const compactType = "application/vnd.podkeeper.state"

type compactState struct {
	State
	Pods []compactPod `json:"pods"`
}

// compactPod is a pod without its object, which Hidden takes the name of: that is also
// what keeps encoding/json from looking into v1.Pod.
type compactPod struct {
	Pod
	Hidden struct{} `json:"pod,omitzero"`
	// Type is what protobuf leaves out of an object.
	Type metav1.TypeMeta `json:"type,omitzero"`
}

func writeJSON[T any](w http.ResponseWriter, _ *http.Request, found T) {
	w.Header().Set("Content-Type", "application/json")
	// An error is a client that went away.
	_ = json.NewEncoder(w).Encode(found)
}

// writeState writes a state in the form that is asked for.
func writeState(w http.ResponseWriter, r *http.Request, s State) {
	if r.Header.Get("Accept") != compactType {
		writeJSON(w, r, s)
		return
	}
	envelope := compactState{State: s, Pods: make([]compactPod, len(s.Pods))}
	objects := v1.PodList{Items: make([]v1.Pod, len(s.Pods))}
	for i, p := range s.Pods {
		envelope.Pods[i].Pod, envelope.Pods[i].Type, objects.Items[i] = p, p.Pod.TypeMeta, *p.Pod
	}
	data, err := objects.Marshal()
	if err != nil {
		http.Error(w, "write pods: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", compactType)
	// An error is a client that went away.
	_ = json.NewEncoder(w).Encode(envelope)
	_, _ = w.Write(data)
}

// readState reads a state in the form that it came in.
func readState(resp *http.Response) (s State, err error) {
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != compactType {
		err = json.NewDecoder(resp.Body).Decode(&s) // an agent of another version
		return s, err
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return s, err
	}
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	var envelope compactState
	if err := json.Unmarshal(line, &envelope); err != nil {
		return s, err
	}
	var objects v1.PodList
	if err := objects.Unmarshal(rest); err != nil {
		return s, err
	}
	if len(objects.Items) != len(envelope.Pods) {
		return s, fmt.Errorf("%d pods have %d objects", len(envelope.Pods), len(objects.Items))
	}
	s = envelope.State
	s.Pods = make([]Pod, len(envelope.Pods))
	for i, p := range envelope.Pods {
		s.Pods[i] = p.Pod
		s.Pods[i].Pod = &objects.Items[i]
		s.Pods[i].Pod.TypeMeta = p.Type
	}
	return s, nil
}
