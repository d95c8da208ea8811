package defaults

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

func setVolume(v *v1.Volume) {
	if v.VolumeSource == (v1.VolumeSource{}) {
		v.EmptyDir = &v1.EmptyDirVolumeSource{}
	}
	if v.Image != nil {
		set(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
	if v.HostPath != nil {
		point(&v.HostPath.Type, v1.HostPathUnset)
	}
	setFileVolume(&v.VolumeSource)
	setNetworkVolume(&v.VolumeSource)
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		setClaim(&v.Ephemeral.VolumeClaimTemplate.Spec)
	}
}

// setFileVolume is for the sources that are written out as files.
func setFileVolume(v *v1.VolumeSource) {
	if v.Secret != nil {
		point(&v.Secret.DefaultMode, v1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		point(&v.ConfigMap.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		point(&v.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
		setDownwardFiles(v.DownwardAPI.Items)
	}
	if v.Projected == nil {
		return
	}
	point(&v.Projected.DefaultMode, v1.ProjectedVolumeSourceDefaultMode)
	for i := range v.Projected.Sources {
		source := &v.Projected.Sources[i]
		if source.DownwardAPI != nil {
			setDownwardFiles(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			point(&source.ServiceAccountToken.ExpirationSeconds, int64(time.Hour/time.Second))
		}
	}
}

func setDownwardFiles(files []v1.DownwardAPIVolumeFile) {
	for i := range files {
		setFieldRef(files[i].FieldRef)
	}
}

func setNetworkVolume(v *v1.VolumeSource) {
	if v.ISCSI != nil {
		set(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		set(&v.RBD.RBDPool, "rbd")
		set(&v.RBD.RadosUser, "admin")
		set(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		point(&v.AzureDisk.CachingMode, v1.AzureDataDiskCachingReadWrite)
		point(&v.AzureDisk.FSType, "ext4")
		point(&v.AzureDisk.ReadOnly, false)
		point(&v.AzureDisk.Kind, v1.AzureSharedBlobDisk)
	}
	if v.ScaleIO != nil {
		set(&v.ScaleIO.StorageMode, "ThinProvisioned")
		set(&v.ScaleIO.FSType, "xfs")
	}
}
