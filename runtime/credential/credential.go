package credential

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// Node is the node's own configuration. The zero Node has none.
type Node struct {
	// Files are docker configurations (config.json), the preferred one first. One
	// that is missing is passed over.
	Files []string
	// Text is a further one, before the files: the DOCKER_AUTH_CONFIG of docker.
	Text string
}

// Find returns the logins to try for an image, the best first and each once. With
// an error it returns those that could be had all the same.
func (n Node) Find(ctx context.Context, image string, secrets []*pod.Object) ([]runtime.Auth, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil, fmt.Errorf("find credentials: %w", err)
	}
	configs, err := readSecrets(secrets)
	errs := []error{err}
	found := best(configs, named)

	configs, err = n.read()
	errs = append(errs, err)
	for _, c := range configs {
		auth, err := c.ask(ctx, reference.Domain(named))
		if err != nil {
			errs = append(errs, err)
		} else if auth != (runtime.Auth{}) {
			found = append(found, auth)
		}
	}
	found = append(found, best(configs, named)...)
	var logins []runtime.Auth
	for _, auth := range found {
		if !slices.Contains(logins, auth) {
			logins = append(logins, auth)
		}
	}
	return logins, errors.Join(errs...)
}

func readSecrets(secrets []*pod.Object) ([]config, error) {
	var configs []config
	var errs []error
	for _, s := range secrets {
		var c config
		var err error
		switch s.Type {
		case v1.SecretTypeDockerConfigJson:
			c, err = parse([]byte(s.Data[v1.DockerConfigJsonKey].Reveal()))
		case v1.SecretTypeDockercfg:
			c, err = parseOld([]byte(s.Data[v1.DockerConfigKey].Reveal()))
		default:
			err = fmt.Errorf("its type is %s, want %s", s.Type, v1.SecretTypeDockerConfigJson)
		}
		// A helper is a program of the node: a manifest cannot name one.
		c.store, c.helpers = "", nil
		configs = append(configs, c)
		if err != nil {
			errs = append(errs, fmt.Errorf("pull secret %s/%s: %w", s.Key.Namespace, s.Key.Name, err))
		}
	}
	return configs, errors.Join(errs...)
}

// read reads the node's configurations.
func (n Node) read() ([]config, error) {
	var configs []config
	var errs []error
	add := func(name string, data []byte) {
		c, err := parse(data)
		configs = append(configs, c)
		if err != nil {
			errs = append(errs, fmt.Errorf("docker configuration %s: %w", name, err))
		}
	}
	if n.Text != "" {
		add("DOCKER_AUTH_CONFIG", []byte(n.Text))
	}
	for _, file := range n.Files {
		data, err := os.ReadFile(file)
		switch {
		case err == nil:
			add(file, data)
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
	}
	return configs, errors.Join(errs...)
}
