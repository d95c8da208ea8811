package manifests

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/podkeeper/podkeeper/manifests/decode"
	"github.com/podkeeper/podkeeper/manifests/fields"
	"github.com/podkeeper/podkeeper/pod"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The annotations that tell where a pod comes from, as on static pods.
const (
	SourceAnnotation = "kubernetes.io/config.source"
	HashAnnotation   = "kubernetes.io/config.hash"
	// UpdateAnnotation with UpdateReplace asks for a whole new pod on every edit.
	UpdateAnnotation = "podkeeper.io/update"
	UpdateReplace    = "replace"
	// RestartAnnotation with "true" asks for a restart of each container whose
	// environment comes from a ConfigMap or Secret that has changed. A variable from a
	// file (fileKeyRef) does not count: the file is in an emptyDir, so it is the pod
	// that writes it, and nobody from outside. It is read at each start.
	RestartAnnotation = "podkeeper.io/restart-on-change"
)

// Name returns the name of a pod of a manifest on a node.
func Name(name, nodeName string) string {
	if nodeName == "" || name == "" {
		return name
	}
	return name + "-" + strings.ToLower(nodeName)
}

// key returns the key that an object's metadata give it as a pod, also where the
// rest is broken; zero where there is no name.
func (p *parser) key(root *decode.Node) pod.Key {
	namespace, name, ok := written(root)
	if !ok {
		return pod.Key{}
	}
	return pod.Key{Namespace: namespace, Name: Name(name, p.opts.NodeName)}
}

// written returns the namespace and name that an object has as it is written.
func written(root *decode.Node) (namespace, name string, ok bool) {
	if name, ok = text(root.Member("metadata").Member("name")); !ok {
		return "", "", false
	}
	n := root.Member("metadata").Member("namespace")
	if namespace, ok = text(n); ok {
		return namespace, name, true
	}
	if n != nil && n.Kind != decode.Null && n.Text != "" {
		return "", "", false // it is in a namespace, and nobody knows which
	}
	return v1.NamespaceDefault, name, true
}

// identify makes an object the pod of this node and source.
func identify(object *v1.Pod, source pod.SourceKind, nodeName string) {
	if object.Namespace == "" {
		object.Namespace = v1.NamespaceDefault
	}
	object.Name = Name(object.Name, nodeName)
	// The manifest has no say in what is the agent's to set.
	object.Spec.NodeName = ""
	for _, key := range fields.AgentAnnotations() {
		delete(object.Annotations, key)
	}
	if source == pod.FileSource {
		// As the kubelet does it: a pod of a file stays when its node has troubles.
		tolerate(object, v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute})
	}
}

func tolerate(object *v1.Pod, want v1.Toleration) {
	tolerations := slices.Clone(object.Spec.Tolerations)
	for i, t := range tolerations {
		if t.MatchToleration(&want) {
			tolerations[i] = want
			object.Spec.Tolerations = tolerations
			return
		}
	}
	object.Spec.Tolerations = append(tolerations, want)
}

// finish drops what an API server would keep in a pod and adds what the agent
// says of it. There is no time among it: the same text gives the same pod.
func finish(object *v1.Pod, source pod.SourceKind, nodeName string) {
	if priority := pod.Priority(object); priority != 0 {
		object.Spec.Priority = &priority // as an API server would, of the class
	}
	object.Spec.NodeName = strings.ToLower(nodeName)
	object.ObjectMeta = metav1.ObjectMeta{
		Name:        object.Name,
		Namespace:   object.Namespace,
		UID:         object.UID,
		Labels:      object.Labels,
		Annotations: object.Annotations,
	}
	object.Status = v1.PodStatus{}
	hash := configHash(object)
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations[SourceAnnotation] = string(source)
	object.Annotations[HashAnnotation] = hash
}

var uidPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)

func validUID(uid string) bool { return uidPattern.MatchString(uid) }

// MintUID returns the UID of a pod whose manifest gives it none: a UUID of
// version 5 over the agent's root dir, its node name, the key and the pod hash.
// Where the pod came from plays no part, so it keeps the UID when its file is
// renamed or it moves to a URL.
func MintUID(rootDir, nodeName string, key pod.Key, hash pod.Hash) types.UID {
	space := uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/podkeeper/podkeeper"))
	name := strings.Join([]string{rootDir, nodeName, key.Namespace, key.Name, hash.String()}, "\x00")
	return types.UID(uuid.NewSHA1(space, []byte(name)).String())
}

// scalar prints a value that is short enough for a message.
func scalar(value any) (string, bool) {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		if len(v.String()) > 256 {
			return "", false
		}
		return fmt.Sprintf("%q", v.String()), true
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprint(v.Interface()), true
	}
	return "", false
}
