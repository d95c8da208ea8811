package oracle_test

import (
	"fmt"
	"testing"

	"github.com/podkeeper/podkeeper/tools/oracle"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestGeneratedObjectsAreJudgedAsUpstreamJudgesThem(t *testing.T) {
	var count tally
	for s := range uint64(*pods) {
		if t.Failed() {
			break
		}
		count.add(compareObject(t, oracle.GenerateObject(*from+s), fmt.Sprintf("seed %d", *from+s)))
	}
	count.check(t)
}

// compareObject reports how the two sides differ, and returns upstream's errors.
func compareObject(t *testing.T, object metav1.Object, what string) field.ErrorList {
	t.Helper()
	result, err := oracle.CompareObject(object)
	switch {
	case err != nil:
		t.Errorf("%s: %v", what, err)
	case result.Diff != "":
		t.Errorf("%s (%T): %s", what, object, result.Diff)
	}
	return result.Theirs
}

// The rules of each type of Secret, and of what a key may be.
func TestObjectsAreJudgedAsUpstreamJudgesThem(t *testing.T) {
	named := metav1.ObjectMeta{Name: "x", Namespace: "default"}
	for name, object := range map[string]metav1.Object{
		"no data":                     &v1.ConfigMap{ObjectMeta: named},
		"a key twice":                 &v1.ConfigMap{ObjectMeta: named, Data: map[string]string{"a": ""}, BinaryData: map[string][]byte{"a": nil}},
		"a key of dots":               &v1.ConfigMap{ObjectMeta: named, Data: map[string]string{"..": "", "...": "", ".": "", "..a": ""}},
		"a key of 253 characters":     &v1.ConfigMap{ObjectMeta: named, Data: map[string]string{fmt.Sprintf("%0253d", 0): ""}},
		"a key of 254 characters":     &v1.ConfigMap{ObjectMeta: named, BinaryData: map[string][]byte{fmt.Sprintf("%0254d", 0): nil}},
		"a ConfigMap that is full":    &v1.ConfigMap{ObjectMeta: named, Data: map[string]string{"a": string(make([]byte, 1<<20))}},
		"a ConfigMap too full":        &v1.ConfigMap{ObjectMeta: named, Data: map[string]string{"a": string(make([]byte, 1<<20))}, BinaryData: map[string][]byte{"b": {0}}},
		"a Secret too full":           &v1.Secret{ObjectMeta: named, Data: map[string][]byte{"a": make([]byte, 1<<20)}, StringData: map[string]string{"b": "x"}},
		"a Secret of no type":         &v1.Secret{ObjectMeta: named},
		"stringData that win":         &v1.Secret{ObjectMeta: named, Data: map[string][]byte{"a": {1}}, StringData: map[string]string{"a": "x", "b": ""}},
		"a registry without its key":  &v1.Secret{ObjectMeta: named, Type: v1.SecretTypeDockerConfigJson},
		"a registry without JSON":     &v1.Secret{ObjectMeta: named, Type: v1.SecretTypeDockerConfigJson, StringData: map[string]string{".dockerconfigjson": "x"}},
		"a registry that is null":     &v1.Secret{ObjectMeta: named, Type: v1.SecretTypeDockerConfigJson, StringData: map[string]string{".dockerconfigjson": "null"}},
		"an old registry":             &v1.Secret{ObjectMeta: named, Type: v1.SecretTypeDockercfg, StringData: map[string]string{".dockercfg": "{}"}},
		"a user without a password":   &v1.Secret{ObjectMeta: named, Type: v1.SecretTypeBasicAuth, StringData: map[string]string{"username": ""}},
		"neither user nor password":   &v1.Secret{ObjectMeta: named, Type: v1.SecretTypeBasicAuth},
		"a private key that is empty": &v1.Secret{ObjectMeta: named, Type: v1.SecretTypeSSHAuth, StringData: map[string]string{"ssh-privatekey": ""}},
		"TLS without its key":         &v1.Secret{ObjectMeta: named, Type: v1.SecretTypeTLS, StringData: map[string]string{"tls.crt": ""}},
		"a token of no account":       &v1.Secret{ObjectMeta: named, Type: v1.SecretTypeServiceAccountToken},
		"a claim of nothing":          &v1.PersistentVolumeClaim{ObjectMeta: named},
	} {
		compareObject(t, object, name)
	}
}
