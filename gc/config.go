package gc

import (
	"context"
	"time"

	"github.com/podkeeper/podkeeper/node/stats"
)

// Config is what can be set of the passes. The zero value is usable.
type Config struct {
	// Containers says which dead containers stay, nil as [DefaultPolicy] does; they
	// are looked at once in ContainerPeriod, 0 for a minute.
	Containers      *Policy
	ContainerPeriod time.Duration
	// KeepLogs is for how long the containers of a removed pod stay after they ended.
	KeepLogs time.Duration
	// Images says which images stay, nil as [DefaultImagePolicy] does; they are looked
	// at once in ImagePeriod, 0 for five minutes.
	Images      *ImagePolicy
	ImagePeriod time.Duration
	// ImageUsage tells how full the filesystem of the images is; nil asks the machine.
	ImageUsage func(context.Context) (*stats.Filesystem, error)
}
