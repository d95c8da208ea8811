package credential

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// helperTimeout bounds one run of a credential helper: some ask a cloud.
const helperTimeout = 30 * time.Second

// hubServer is what docker calls its own registry where it stores a login.
const hubServer = "https://index.docker.io/v1/"

// ask runs the credential helper that is configured for a registry; the zero Auth
// is what it says where it knows of no login, or where there is no helper.
func (c config) ask(ctx context.Context, registry string) (runtime.Auth, error) {
	server := registry
	if registry == hub {
		server = hubServer
	}
	name := cmp.Or(c.helpers[server], c.helpers[registry], c.store)
	if name == "" {
		return runtime.Auth{}, nil
	}
	auth, err := get(ctx, name, server)
	if err != nil {
		return runtime.Auth{}, fmt.Errorf("credential helper %s, for %s: %w", name, server, err)
	}
	return auth, nil
}

// get speaks the helpers' protocol: the server on stdin, an object on stdout.
func get(ctx context.Context, name, server string) (runtime.Auth, error) {
	if strings.ContainsRune(name, '/') {
		return runtime.Auth{}, errors.New("want a name, not a path")
	}
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	var out bytes.Buffer
	helper := exec.CommandContext(ctx, "docker-credential-"+name, "get")
	helper.Stdin, helper.Stdout = strings.NewReader(server), &out
	// With what it started: a helper is often a script.
	helper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	helper.Cancel = func() error { return syscall.Kill(-helper.Process.Pid, syscall.SIGKILL) }
	helper.WaitDelay = time.Second
	if err := helper.Run(); err != nil {
		if unknown(out.String()) {
			return runtime.Auth{}, nil
		}
		return runtime.Auth{}, err
	}
	var answer struct{ Username, Secret string }
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return runtime.Auth{}, errors.New("its answer is not the JSON of credentials")
	}
	if answer.Username == "<token>" {
		return runtime.Auth{IdentityToken: answer.Secret, Server: server}, nil
	}
	return runtime.Auth{Username: answer.Username, Password: answer.Secret, Server: server}, nil
}

// unknown reports whether a helper said that it has no login, for which the
// protocol has a text and no code.
func unknown(said string) bool {
	return strings.TrimSpace(said) == "credentials not found in native keychain"
}
