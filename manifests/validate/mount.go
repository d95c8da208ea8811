package validate

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func volumeMounts(around *surroundings, c *v1.Container, path *field.Path) field.ErrorList {
	devices := map[string]string{} // paths by name
	for _, device := range c.VolumeDevices {
		devices[device.Name] = device.DevicePath
	}
	var errs field.ErrorList
	taken := map[string]bool{}
	for i := range c.VolumeMounts {
		m, at := &c.VolumeMounts[i], path.Index(i)
		errs = slices.Concat(errs,
			required(at.Child("name"), m.Name),
			required(at.Child("mountPath"), m.MountPath),
			subPaths(m, at),
			propagation(m, c, at.Child("mountPropagation")),
			recursiveReadOnly(m, at.Child("recursiveReadOnly")),
			bindMountOptions(m, around.volumes[m.Name].Image != nil, at.Child("bindMountOptions")),
		)
		if _, known := around.volumes[m.Name]; !known {
			errs = append(errs, field.NotFound(at.Child("name"), m.Name))
		}
		if taken[m.MountPath] {
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must not be the path of another mount"))
		}
		taken[m.MountPath] = true
		if _, device := devices[m.Name]; device {
			errs = append(errs, field.Invalid(at.Child("name"), m.Name, "must not be one of volumeDevices too"))
		}
		if hasValue(devices, m.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must not be the path of one of volumeDevices"))
		}
	}
	return errs
}

func hasValue(all map[string]string, value string) bool {
	for _, v := range all {
		if v == value {
			return true
		}
	}
	return false
}

func subPaths(m *v1.VolumeMount, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		relativePath(path.Child("subPath"), m.SubPath),
		relativePath(path.Child("subPathExpr"), m.SubPathExpr),
	)
	if m.SubPath != "" && m.SubPathExpr != "" {
		errs = append(errs, field.Invalid(path.Child("subPathExpr"), m.SubPathExpr, "must not be set together with subPath"))
	}
	return errs
}

func propagation(m *v1.VolumeMount, c *v1.Container, path *field.Path) field.ErrorList {
	errs := optionalChoice(path, m.MountPropagation,
		v1.MountPropagationBidirectional, v1.MountPropagationHostToContainer, v1.MountPropagationNone)
	both := m.MountPropagation != nil && *m.MountPropagation == v1.MountPropagationBidirectional
	return append(errs, forbiddenIf(both && !privileged(c), path, "can be Bidirectional for a privileged container only")...)
}

func privileged(c *v1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
}

func recursiveReadOnly(m *v1.VolumeMount, path *field.Path) field.ErrorList {
	if m.RecursiveReadOnly == nil || *m.RecursiveReadOnly == v1.RecursiveReadOnlyDisabled {
		return nil
	}
	if errs := choice(path, *m.RecursiveReadOnly, v1.RecursiveReadOnlyDisabled,
		v1.RecursiveReadOnlyIfPossible, v1.RecursiveReadOnlyEnabled); errs != nil {
		return errs
	}
	propagates := m.MountPropagation != nil && *m.MountPropagation != v1.MountPropagationNone
	return slices.Concat(
		forbiddenIf(!m.ReadOnly, path, "needs readOnly: true"),
		forbiddenIf(propagates, path, "needs mountPropagation None"),
	)
}

func bindMountOptions(m *v1.VolumeMount, ofImage bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, option := range m.BindMountOptions {
		errs = append(errs, choice(path.Index(i), v1.BindMountOption(option),
			v1.BindMountOptionNoExec, v1.BindMountOptionNoDev, v1.BindMountOptionNoSUID)...)
		if seen[option] {
			errs = append(errs, field.Duplicate(path.Index(i), option))
		}
		seen[option] = true
	}
	if ofImage && len(m.BindMountOptions) > 0 {
		errs = append(errs, field.Invalid(path, m.BindMountOptions, "must not be set for a volume of type image"))
	}
	return errs
}

func volumeDevices(around *surroundings, c *v1.Container, path *field.Path) field.ErrorList {
	mounts := map[string]string{} // paths by name
	for _, mount := range c.VolumeMounts {
		mounts[mount.Name] = mount.MountPath
	}
	var errs field.ErrorList
	names, paths := map[string]bool{}, map[string]bool{}
	for i, device := range c.VolumeDevices {
		namePath, devicePath := path.Index(i).Child("name"), path.Index(i).Child("devicePath")
		errs = slices.Concat(errs, required(namePath, device.Name), required(devicePath, device.DevicePath),
			noClimbing(devicePath, device.DevicePath))
		volume, known := around.volumes[device.Name]
		switch {
		case !known:
			errs = append(errs, field.NotFound(namePath, device.Name))
		case volume.PersistentVolumeClaim == nil && volume.Ephemeral == nil:
			errs = append(errs, field.Invalid(namePath, device.Name, "must be a volume of type persistentVolumeClaim or ephemeral"))
		}
		if device.Name != "" && names[device.Name] {
			errs = append(errs, field.Invalid(namePath, device.Name, "must not be used twice"))
		}
		if paths[device.DevicePath] {
			errs = append(errs, field.Invalid(devicePath, device.DevicePath, "must not be the path of another device"))
		}
		if _, mount := mounts[device.Name]; mount {
			errs = append(errs, field.Invalid(namePath, device.Name, "must not be one of volumeMounts too"))
		}
		if hasValue(mounts, device.DevicePath) {
			errs = append(errs, field.Invalid(devicePath, device.DevicePath, "must not be the path of one of volumeMounts"))
		}
		names[device.Name] = true
		// A path that climbs was reported; it is no place for another to clash with.
		if !climbs(device.DevicePath) {
			paths[device.DevicePath] = true
		}
	}
	return errs
}
