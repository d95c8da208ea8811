package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/podkeeper/podkeeper/runtime"
)

// classify maps an error of the client to the runtime's classes. What none of
// them fits stays as it is: the engine tried and could not.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case lost(err), errdefs.IsUnavailable(err):
		return unavailable(err)
	case errdefs.IsNotFound(err):
		return class(runtime.ErrNotFound, err)
	case errdefs.IsInvalidArgument(err):
		return class(runtime.ErrInvalid, err)
	case answered(err):
		return engineText(err)
	default:
		return err
	}
}

// lost reports whether the engine may have done what was asked although its
// answer never came.
func lost(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) ||
		client.IsErrConnectionFailed(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &network)
}

// answered reports whether the engine said no with a status of its own.
func answered(err error) bool {
	return errdefs.IsInternal(err) || errdefs.IsConflict(err) || errdefs.IsUnauthorized(err) ||
		errdefs.IsPermissionDenied(err) || errdefs.IsResourceExhausted(err) ||
		errdefs.IsFailedPrecondition(err) || errdefs.IsNotImplemented(err)
}

func unavailable(err error) error {
	if errors.Is(err, runtime.ErrUnavailable) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
}

func class(sentinel, err error) error {
	return fmt.Errorf("%w: %w", sentinel, engineText(err))
}

// engineText returns the engine's own words, without what the client wraps
// around them.
func engineText(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
