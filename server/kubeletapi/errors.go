package kubeletapi

import (
	"context"
	"errors"
	"net/http"
)

// The classes of errors that an answer may wrap. The adapter makes a status of the
// class, and the whole text of the error is the message: say what is wrong in few
// words. An error of no class is 500.
var (
	// ErrNotFound: no such pod, container or file.
	ErrNotFound = errors.New("not found")
	// ErrBadRequest: the request cannot be understood.
	ErrBadRequest = errors.New("bad request")
	// ErrInvalid: the request is understood, and has a value that cannot be.
	ErrInvalid = errors.New("invalid")
	// ErrConflict: it is there, and not in a state for this.
	ErrConflict = errors.New("not possible now")
	// ErrUnavailable: the engine is away, or the agent not ready or stopping.
	ErrUnavailable = errors.New("not available")
	// ErrTooMany: the cap on what goes on at once is reached.
	ErrTooMany = errors.New("too many at once")
	// ErrTooLarge: the body or an argument is larger than is taken.
	ErrTooLarge = errors.New("too large")
	// ErrUnauthenticated: the caller is nobody who is known.
	ErrUnauthenticated = errors.New("unauthorized")
	// ErrForbidden: the caller is known, and may not.
	ErrForbidden = errors.New("forbidden")
	// ErrDisabled: this is turned off.
	ErrDisabled = errors.New("disabled")
)

// Wrong is an error of one of those classes, whose text is the message alone.
func Wrong(class error, message string) error { return classed{class, message} }

type classed struct {
	class   error
	message string
}

func (c classed) Error() string { return c.message }
func (c classed) Unwrap() error { return c.class }

// status returns the status for an error of an answer.
func status(err error) int {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, ErrBadRequest):
		return http.StatusBadRequest
	case errors.Is(err, ErrInvalid):
		return http.StatusUnprocessableEntity
	case errors.Is(err, ErrConflict):
		return http.StatusConflict
	case errors.Is(err, ErrTooMany):
		return http.StatusTooManyRequests
	case errors.Is(err, ErrTooLarge), errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrUnauthenticated):
		return http.StatusUnauthorized
	case errors.Is(err, ErrForbidden):
		return http.StatusForbidden
	case errors.Is(err, ErrDisabled):
		return http.StatusMethodNotAllowed
	case errors.Is(err, ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
