package agent_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/server"
)

// Each user's password is the name in capitals.
const users = `anna:$2a$04$vjJsbOu1LTI7P8dtHaepFuDQAMVbd/KH95piDJJBRUUpiLzW6jN8q
bert:$2a$04$UD2FwejeINalssqLEZnxyuMdGSbHfYgb3Gi.DofhN1TO99asarr8W
`

func encoded(user string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + strings.ToUpper(user)))
}

// dockerConfig has a login for each place.
func dockerConfig(logins map[string]string) string {
	var entries []string
	for place, user := range logins {
		entries = append(entries, fmt.Sprintf("%q: {\"auth\": %q}", place, encoded(user)))
	}
	return `{"auths": {` + strings.Join(entries, ", ") + `}}`
}

// pullSecret returns the manifest of one.
func pullSecret(name, config string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\ntype: kubernetes.io/dockerconfigjson\nstringData:\n  .dockerconfigjson: '" + config + "'\n---\n"
}

// A registry that wants a login gets it from the pod's secrets or the node's
// configuration, the right one of several; who has none waits. No password shows
// anywhere (C104).
func TestPullWithCredentials(t *testing.T) {
	w := newWorld(t)
	writeFile(t, w.path("htpasswd"), users)
	r := w.newRegistry("auth: {htpasswd: {realm: test, path: " + w.path("htpasswd") + "}}\n")
	login := base64.URLEncoding.EncodeToString([]byte(`{"username": "anna", "password": "ANNA"}`))
	image := func(name string) string { return r.address + "/team/" + name + ":1" }
	for _, name := range []string{"secret", "several", "nobody", "late", "node"} {
		w.pushAs(image(name), login)
		if name != "nobody" { // which stays in the registry
			w.images = append(w.images, image(name))
		}
	}
	secrets := func(names ...string) string {
		return "  imagePullSecrets: [{name: " + strings.Join(names, "}, {name: ") + "}]\n"
	}
	mine := dockerConfig(map[string]string{r.address: "anna"})
	w.write("secret.yaml", pullSecret("mine", mine)+manifest("{name: secret}", of("app", image("secret")))+secrets("mine"))
	// The most specific entry is wrong here, and the next one right.
	w.write("several.yaml", pullSecret("both", dockerConfig(map[string]string{r.address + "/team": "zoe", r.address: "bert"}))+
		manifest("{name: several}", of("app", image("several")))+secrets("both"))
	w.write("nobody.yaml", manifest("{name: nobody}", of("app", image("nobody"))))
	w.write("late.yaml", manifest("{name: late}", of("app", image("late")))+secrets("later"))
	w.start()
	w.await("they run", running("secret"), running("several"))
	s := w.await("the others wait", waits("nobody", "app", "ImagePullBackOff", "ErrImagePull"), waits("late", "app", "ImagePullBackOff", "ErrImagePull"))
	if message := status(s, "late", "app").State.Waiting.Message; !strings.Contains(message, `secret "later" not found`) {
		t.Errorf("it waits: %s", message)
	}
	w.write("later.yaml", pullSecret("later", mine))
	w.await("it runs with its secret", running("late"))

	mkdir(t, w.cfg.RootDir)
	writeFile(t, w.cfg.RootDir+"/config.json", dockerConfig(map[string]string{"127.0.0.1" + r.address[strings.LastIndexByte(r.address, ':'):]: "bert"}))
	w.write("node.yaml", manifest("{name: node}", of("app", image("node"))))
	w.await("it runs with the node's login", running("node"))

	w.pullByHand(r)

	for _, secret := range []string{"ANNA", "BERT", "ZOE", encoded("anna"), encoded("bert"), encoded("zoe")} {
		if said := w.said.lines(secret); len(said) > 0 {
			t.Errorf("%s shows in the log: %q", secret, said)
		}
		if said := summary(s); strings.Contains(said, secret) {
			t.Errorf("%s shows in the status: %s", secret, said)
		}
		for name, c := range w.containers() {
			if said := fmt.Sprint(w.inspect(c.ID).Config); strings.Contains(said, secret) {
				t.Errorf("%s shows in container %s", secret, name)
			}
		}
	}
}

// pullByHand pulls as a client of the socket does: with the node's logins, with wrong
// ones and none, what there is not, and from a registry that is away.
func (w *world) pullByHand(r *registry) {
	w.t.Helper()
	client := server.NewClient(w.cfg.Socket)
	config := filepath.Join(w.cfg.RootDir, "config.json")
	pull := func(image string) (id string, told int, err error) {
		id, err = client.Pull(w.t.Context(), image, func(server.Progress) { told++ })
		return id, told, err
	}
	fresh := r.address + "/team/fresh:1"
	w.pushAs(fresh, base64.URLEncoding.EncodeToString([]byte(`{"username": "anna", "password": "ANNA"}`)))
	w.images = append(w.images, fresh)
	good := dockerConfig(map[string]string{r.address + "/team": "zoe", r.address: "anna"}) // the second will do
	for _, c := range []struct{ why, config, image, want string }{
		{"a login that is wrong", dockerConfig(map[string]string{r.address: "zoe"}), fresh, "(with the login that there is for it)"},
		{"no login", "{}", fresh, "without a login: there is none for it in " + config},
		{"an image that there is not", good, r.address + "/team/none:1", "not found"},
	} {
		writeFile(w.t, config, c.config)
		if id, _, err := pull(c.image); err == nil || !strings.Contains(err.Error(), c.want) || id != "" {
			w.t.Errorf("%s: %q, %v; want an error with %q", c.why, id, err, c.want)
		}
	}
	writeFile(w.t, config, good)
	id, told, err := pull(fresh)
	if err != nil || !strings.HasPrefix(id, "sha256:") || told == 0 {
		w.t.Errorf("with the right login: %q after %d words, %v", id, told, err)
	}
	r.stop()
	if _, _, err := pull(fresh); err == nil {
		w.t.Error("it is pulled from a registry that is away")
	}
	r.start()
	if again, _, err := pull(fresh); err != nil || again != id {
		w.t.Errorf("pulled again: %q, %v; want %q", again, err, id)
	}
}
