package validate

import (
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func containers(around *surroundings, path *field.Path) field.ErrorList {
	list := around.spec.Containers
	if len(list) == 0 {
		return one(field.Required(path, "a pod needs at least one container"))
	}
	var errs field.ErrorList
	names, hostPorts := map[string]bool{}, map[string]bool{}
	for i := range list {
		c, at := &list[i], path.Index(i)
		errs = slices.Concat(errs,
			container(around, c, at),
			uniqueName(c.Name, names, at),
			uniqueHostPorts(c.Ports, hostPorts, at.Child("ports")),
			running(around, c, at),
			restartPolicy(c, at),
			restartRules(c.RestartPolicyRules, at.Child("restartPolicyRules")),
		)
		names[c.Name] = true
	}
	return errs
}

func initContainers(around *surroundings, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range around.spec.Containers {
		names[around.spec.Containers[i].Name] = true
	}
	for i := range around.spec.InitContainers {
		c, at := &around.spec.InitContainers[i], path.Index(i)
		errs = slices.Concat(errs,
			container(around, c, at),
			uniqueName(c.Name, names, at),
			// They run one after the other: each may have the ports of the others.
			uniqueHostPorts(c.Ports, map[string]bool{}, at.Child("ports")),
			restartPolicy(c, at),
		)
		if c.RestartPolicy != nil {
			errs = append(errs, restartRules(c.RestartPolicyRules, at.Child("restartPolicyRules"))...)
		}
		if sidecar(c) {
			errs = append(errs, running(around, c, at)...)
		} else {
			errs = append(errs, finishing(c, at)...)
		}
		if c.Name != "" {
			names[c.Name] = true
		}
	}
	return errs
}

// sidecar reports whether an init container keeps running beside the others.
func sidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// finishing has what an init container cannot have which the pod waits for.
func finishing(c *v1.Container, path *field.Path) field.ErrorList {
	const why = "is for containers that keep running; an init container needs restartPolicy Always for it"
	errs := slices.Concat(
		forbiddenIf(c.Lifecycle != nil, path.Child("lifecycle"), why),
		forbiddenIf(c.LivenessProbe != nil, path.Child("livenessProbe"), why),
		forbiddenIf(c.ReadinessProbe != nil, path.Child("readinessProbe"), why),
		forbiddenIf(c.StartupProbe != nil, path.Child("startupProbe"), why),
	)
	for i, policy := range c.ResizePolicy {
		if policy.RestartPolicy == v1.RestartContainer {
			errs = append(errs, field.Invalid(path.Child("resizePolicy").Index(i).Child("restartPolicy"),
				policy.RestartPolicy, "must be NotRequired: the pod waits for this container"))
		}
	}
	return errs
}

func ephemeralContainers(around *surroundings, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	targets := map[string]bool{}
	for _, list := range [][]v1.Container{around.spec.Containers, around.spec.InitContainers} {
		for i := range list {
			targets[list[i].Name] = true
		}
	}
	names := map[string]bool{}
	for name := range targets {
		names[name] = true
	}
	for i := range around.spec.EphemeralContainers {
		e, at := &around.spec.EphemeralContainers[i], path.Index(i)
		c := (*v1.Container)(&e.EphemeralContainerCommon)
		errs = slices.Concat(errs,
			container(around, c, at),
			uniqueName(c.Name, names, at),
			onlyFields(e.EphemeralContainerCommon, ephemeralFields, "must not be set for an ephemeral container", at),
		)
		names[c.Name] = true
		if e.TargetContainerName != "" && !targets[e.TargetContainerName] {
			errs = append(errs, field.NotFound(at.Child("targetContainerName"), e.TargetContainerName))
		}
		for j, mount := range c.VolumeMounts {
			mountPath := at.Child("volumeMounts").Index(j)
			errs = slices.Concat(errs,
				forbiddenIf(mount.SubPath != "", mountPath.Child("subPath"), "must not be set for an ephemeral container"),
				forbiddenIf(mount.SubPathExpr != "", mountPath.Child("subPathExpr"), "must not be set for an ephemeral container"),
			)
		}
	}
	return errs
}

// ephemeralFields are what a container for debugging may have. It is a list of
// what may be, not of what may not, so that a field of a later Kubernetes is
// refused until somebody thought about it.
var ephemeralFields = []string{
	"name", "image", "command", "args", "workingDir", "envFrom", "env", "volumeMounts", "volumeDevices",
	"terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "securityContext",
	"stdin", "stdinOnce", "tty",
}

// onlyFields reports each field of a struct which is set and not in allowed,
// by its JSON name.
func onlyFields(value any, allowed []string, why string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	v := reflect.ValueOf(value)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if !slices.Contains(allowed, name) && !v.Field(i).IsZero() {
			errs = append(errs, field.Forbidden(path.Child(name), why))
		}
	}
	return errs
}

func uniqueName(name string, taken map[string]bool, path *field.Path) field.ErrorList {
	if taken[name] {
		return one(field.Duplicate(path.Child("name"), name))
	}
	return nil
}

// container has what holds for containers of every kind.
func container(around *surroundings, c *v1.Container, path *field.Path) field.ErrorList {
	return slices.Concat(
		checked(path.Child("name"), c.Name, validation.IsDNS1123Label),
		image(path.Child("image"), c.Image),
		pullPolicy(path.Child("imagePullPolicy"), c.ImagePullPolicy),
		requiredChoice(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
			v1.TerminationMessageReadFile, v1.TerminationMessageFallbackToLogsOnError),
		ports(c.Ports, path.Child("ports")),
		env(c.Env, path.Child("env")),
		envFrom(c.EnvFrom, path.Child("envFrom")),
		volumeMounts(around, c, path.Child("volumeMounts")),
		volumeDevices(around, c, path.Child("volumeDevices")),
		containerResources(&c.Resources, around.claims, path.Child("resources")),
		resizePolicy(c.ResizePolicy, around.spec.RestartPolicy, path.Child("resizePolicy")),
		containerSecurity(c.SecurityContext, around.hostUsers, path.Child("securityContext")),
	)
}

func image(path *field.Path, name string) field.ErrorList {
	errs := required(path, name)
	if strings.TrimSpace(name) != name {
		errs = append(errs, field.Invalid(path, name, "must not begin or end with white space"))
	}
	return errs
}

func pullPolicy(path *field.Path, policy v1.PullPolicy) field.ErrorList {
	return requiredChoice(path, policy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)
}

// running has what only containers can have which keep running: hooks, probes
// and the signal that stops them.
func running(around *surroundings, c *v1.Container, path *field.Path) field.ErrorList {
	grace := around.spec.TerminationGracePeriodSeconds
	return slices.Concat(
		lifecycle(c.Lifecycle, grace, around.spec.OS, path.Child("lifecycle")),
		restartingProbe(c.LivenessProbe, grace, path.Child("livenessProbe")),
		readinessProbe(c.ReadinessProbe, grace, path.Child("readinessProbe")),
		restartingProbe(c.StartupProbe, grace, path.Child("startupProbe")),
	)
}

// restartPolicy checks a container's own restart policy.
func restartPolicy(c *v1.Container, path *field.Path) field.ErrorList {
	path = path.Child("restartPolicy")
	if c.RestartPolicy == nil && len(c.RestartPolicyRules) > 0 {
		return one(field.Required(path, "must be set where there are restartPolicyRules"))
	}
	return optionalChoice(path, c.RestartPolicy, v1.ContainerRestartPolicyAlways,
		v1.ContainerRestartPolicyNever, v1.ContainerRestartPolicyOnFailure)
}

// restartRules checks the exceptions from a container's restart policy.
func restartRules(rules []v1.ContainerRestartRule, path *field.Path) field.ErrorList {
	const mostRules, mostCodes = 20, 255
	var errs field.ErrorList
	if len(rules) > mostRules {
		errs = append(errs, field.TooMany(path, len(rules), mostRules))
	}
	for i, rule := range rules {
		at := path.Index(i)
		errs = append(errs, choice(at.Child("action"), rule.Action,
			v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers)...)
		if rule.ExitCodes == nil {
			errs = append(errs, field.Required(at.Child("exitCodes"), "must be set"))
			continue
		}
		errs = append(errs, choice(at.Child("exitCodes", "operator"), rule.ExitCodes.Operator,
			v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if n := len(rule.ExitCodes.Values); n > mostCodes {
			errs = append(errs, field.TooMany(at.Child("exitCodes", "values"), n, mostCodes))
		}
	}
	return errs
}
