package reconcile

import "github.com/podkeeper/podkeeper/pod"

// Reason says why a step is taken or a container waits. Where Kubernetes has a
// word for it, it is that word.
type Reason string

// Why something does not run.
const (
	ContainerCreating                    Reason = "ContainerCreating"
	PodInitializing                      Reason = "PodInitializing"
	CrashLoopBackOff                     Reason = "CrashLoopBackOff"
	ErrImagePull                         Reason = "ErrImagePull"
	ImagePullBackOff                     Reason = "ImagePullBackOff"
	ErrImageNeverPull                    Reason = "ErrImageNeverPull"
	InvalidImageName                     Reason = "InvalidImageName"
	CreateContainerError                 Reason = "CreateContainerError"
	CreateContainerConfigError           Reason = "CreateContainerConfigError"
	RunContainerError                    Reason = "RunContainerError"
	FailedCreatePodSandBox               Reason = "FailedCreatePodSandBox"
	NetworkNotReady                      Reason = "NetworkNotReady"
	FailedMount                          Reason = "FailedMount"
	FailedSync                           Reason = "FailedSync"
	NodePorts                            Reason = "NodePorts"
	UnexpectedAdmissionError             Reason = "UnexpectedAdmissionError"
	NodeAffinity                         Reason = "NodeAffinity"
	PodOSNotSupported                    Reason = "PodOSNotSupported"
	NotAllowed                           Reason = "Forbidden"
	PodFeatureUnsupported                Reason = "PodFeatureUnsupported"
	AppArmor                             Reason = "AppArmor"
	SysctlForbidden                      Reason = "SysctlForbidden"
	SupplementalGroupsPolicyNotSupported Reason = "SupplementalGroupsPolicyNotSupported"
	NodeShutdown                         Reason = "NodeShutdown"
	Terminated                           Reason = "Terminated"
	Terminating                          Reason = "Terminating"
	PodStopping                          Reason = "Stopping"
	PodStopped                           Reason = "Stopped"
	MemoryPressure                       Reason = "MemoryPressure"
	DiskPressure                         Reason = "DiskPressure"
	PIDPressure                          Reason = "PIDPressure"
	OutOfDisk                            Reason = "OutOfDisk"
	OutOfImageDisk                       Reason = "OutOfImageDisk"
)

// Why a step is taken.
const (
	Added             Reason = "Added"
	Missing           Reason = "Missing"
	Exited            Reason = "Exited"
	DefinitionChanged Reason = "DefinitionChanged"
	PodChanged        Reason = "PodChanged"
	SandboxChanged    Reason = "SandboxChanged"
	Unhealthy         Reason = "Unhealthy"
	Started           Reason = "Started"

	RestartingAllContainers Reason = "RestartingAllContainers"

	FailedPostStartHook Reason = "FailedPostStartHook"
	FailedPreStopHook   Reason = "FailedPreStopHook"
	Removed             Reason = "Removed"
	Superseded          Reason = "Superseded"
	RestartedByHand     Reason = "RestartedByHand"
	StartedByHand       Reason = "StartedByHand"
	Finished            Reason = "Finished"
	FailedToStart       Reason = "FailedToStart"
	Recorded            Reason = "Recorded"
	ResourcesChanged    Reason = "ResourcesChanged"
	ContentChanged      Reason = "ContentChanged"
	ContentUnknown      Reason = "ContentUnknown"
	ImageAbsent         Reason = "ImageAbsent"
	PolicyAlways        Reason = "PullPolicyAlways"
	PolicyNever         Reason = "PullPolicyNever"
)

// How a container or a pod ended, as status shows it.
const (
	Completed          Reason = "Completed"
	Failed             Reason = "Error"
	OOMKilled          Reason = "OOMKilled"
	DeadlineExceeded   Reason = "DeadlineExceeded"
	ContainerCannotRun Reason = "ContainerCannotRun"
	Evicted            Reason = pod.Evicted
	Preempting         Reason = pod.Preempting
)
