package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
)

// Objects are what pods can refer to, by kind, namespace and name.
type Objects struct {
	Items []Object `json:"items"`
}

// Object is a ConfigMap, a Secret or a PersistentVolumeClaim.
type Object struct {
	Kind      pod.ObjectKind `json:"kind"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Origin    pod.Origin     `json:"origin"`
	Line      int            `json:"line,omitempty"`
	// Type is a Secret's.
	Type      string `json:"type,omitempty"`
	Immutable bool   `json:"immutable,omitempty"`
	// Sizes has the bytes of each value, by key.
	Sizes map[string]int `json:"sizes,omitempty"`
	// Data is the text of a ConfigMap and BinaryData its other values, where that was
	// asked for. No value of a Secret is ever here.
	Data       map[string]string `json:"data,omitempty"`
	BinaryData map[string][]byte `json:"binaryData,omitempty"`
	// Claim is what a PersistentVolumeClaim asks for, and where it is.
	Claim *Claim `json:"claim,omitempty"`
	// Pods are those that refer to it, as namespace/name.
	Pods []string `json:"pods"`
}

// Claim is what a PersistentVolumeClaim asks for.
type Claim struct {
	AccessModes  []v1.PersistentVolumeAccessMode `json:"accessModes"`
	Size         string                          `json:"size"`
	StorageClass string                          `json:"storageClass,omitempty"`
	Reclaim      string                          `json:"reclaim"`
	// Path is its folder; Bound says that it is there.
	Path  string `json:"path"`
	Bound bool   `json:"bound"`
}

// Images are those that the engine has, whoever's.
type Images struct {
	Items []Image `json:"items"`
}

// Image is one image of the engine.
type Image struct {
	ID string `json:"id"`
	// Names are by tag, Digests by digest.
	Names   []string `json:"names"`
	Digests []string `json:"digests,omitempty"`
	// Size has layers that are shared, too.
	Size  int64     `json:"size"`
	Built time.Time `json:"built,omitzero"`
	// Ours: the agent pulled it or ran it. InUse: some container of the engine has it,
	// whoever's. Wanted: something that is desired names it.
	Ours   bool `json:"ours"`
	InUse  bool `json:"inUse"`
	Wanted bool `json:"wanted"`
	// Used is when it was last seen in use.
	Used time.Time `json:"used,omitzero"`
	// Pods are those that name it, as namespace/name.
	Pods []string `json:"pods"`
}

// Collected is what a collection took away, or would.
type Collected struct {
	DryRun     bool            `json:"dryRun"`
	Containers []CollectedItem `json:"containers"`
	Images     []CollectedItem `json:"images"`
	// Failed are the names of those that were to go and are still there.
	Failed []string `json:"failed,omitempty"`
	// Removed and Freed, in bytes, count what went in fact.
	Removed int   `json:"removed"`
	Freed   int64 `json:"freed"`
}

// CollectedItem is one container or image that goes, and why.
type CollectedItem struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Size int64  `json:"size,omitempty"`
	Why  string `json:"why"`
}

// Collection says what is to be collected.
type Collection struct {
	Containers, Images bool
	// All: everything that may go, whatever the thresholds.
	All, DryRun bool
}

// Progress is how far a pull is; the last one of a pull has ID or Error.
type Progress struct {
	Done   int   `json:"done"`
	Layers int   `json:"layers"`
	Bytes  int64 `json:"bytes"`
	Total  int64 `json:"total"`
	// ID is that of the image, once it is there.
	ID    string `json:"id,omitempty"`
	Error string `json:"error,omitempty"`
}

// Inventory is what clients of the socket can ask about the machine, beside pods.
type Inventory struct {
	// Objects returns those of a kind ("" is all); with data, the text of ConfigMaps.
	Objects func(ctx context.Context, kind pod.ObjectKind, data bool) (Objects, error)
	Images  func(ctx context.Context) (Images, error)
	Node    func(ctx context.Context) (*v1.Node, error)
	Collect func(ctx context.Context, what Collection) (Collected, error)
	// Pull fetches an image as the node may, and returns its ID.
	Pull func(ctx context.Context, image string, progress func(Progress)) (string, error)
}

// handleInventory adds the routes of what is there. An answer that failed is 500 with
// what went wrong.
func handleInventory(mux *http.ServeMux, inv Inventory) {
	mux.HandleFunc("GET /v1/objects", answering(func(r *http.Request) (any, error) {
		query := r.URL.Query()
		return inv.Objects(r.Context(), pod.ObjectKind(query.Get("kind")), query.Get("data") == "true")
	}))
	mux.HandleFunc("GET /v1/images", answering(func(r *http.Request) (any, error) { return inv.Images(r.Context()) }))
	mux.HandleFunc("GET /v1/node", answering(func(r *http.Request) (any, error) { return inv.Node(r.Context()) }))
	mux.HandleFunc("POST /v1/gc", answering(func(r *http.Request) (any, error) {
		query := r.URL.Query()
		is := func(name string) bool { return query.Get(name) == "true" }
		return inv.Collect(r.Context(), Collection{Containers: is("containers"), Images: is("images"), All: is("all"), DryRun: is("dryRun")})
	}))
	mux.HandleFunc("POST /v1/images/pull", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		enc, flush := json.NewEncoder(w), http.NewResponseController(w)
		say := func(p Progress) {
			// An error is a client that went away: its context ends.
			_ = enc.Encode(p)
			_ = flush.Flush()
		}
		id, err := inv.Pull(r.Context(), r.URL.Query().Get("image"), say)
		last := Progress{ID: id}
		if err != nil {
			last.Error = err.Error()
		}
		say(last)
	})
}

func answering(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found, err := answer(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// An error is a client that went away.
		_ = json.NewEncoder(w).Encode(found)
	}
}

// Objects returns the objects of a kind ("" is all), ConfigMaps with their text where
// data is true. ErrNoAgent where nobody answers.
func (c *Client) Objects(ctx context.Context, kind pod.ObjectKind, data bool) (Objects, error) {
	return get[Objects](ctx, c, http.MethodGet, fmt.Sprintf("/v1/objects?kind=%s&data=%t", url.QueryEscape(string(kind)), data))
}

// Images returns the images of the engine.
func (c *Client) Images(ctx context.Context) (Images, error) {
	return get[Images](ctx, c, http.MethodGet, "/v1/images")
}

// Node returns the machine as Kubernetes shows one.
func (c *Client) Node(ctx context.Context) (*v1.Node, error) {
	node, err := get[v1.Node](ctx, c, http.MethodGet, "/v1/node")
	return &node, err
}

// Collect has the agent collect what nobody needs, or say what it would.
func (c *Client) Collect(ctx context.Context, what Collection) (Collected, error) {
	return get[Collected](ctx, c, http.MethodPost, fmt.Sprintf("/v1/gc?containers=%t&images=%t&all=%t&dryRun=%t", what.Containers, what.Images, what.All, what.DryRun))
}

// Pull has the agent fetch an image, and returns its ID. progress is called from here.
func (c *Client) Pull(ctx context.Context, image string, progress func(Progress)) (string, error) {
	resp, err := c.do(ctx, http.MethodPost, "/v1/images/pull?image="+url.QueryEscape(image))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := refused(resp); err != nil {
		return "", err
	}
	dec := json.NewDecoder(resp.Body)
	for {
		var p Progress
		if err := dec.Decode(&p); err != nil {
			return "", fmt.Errorf("the agent stopped in the middle of the pull: %w", err)
		}
		switch {
		case p.Error != "":
			return "", errors.New(p.Error)
		case p.ID != "":
			return p.ID, nil
		default:
			progress(p)
		}
	}
}

func get[T any](ctx context.Context, c *Client, method, path string) (found T, err error) {
	resp, err := c.do(ctx, method, path)
	if err != nil {
		return found, err
	}
	defer resp.Body.Close()
	if err := refused(resp); err != nil {
		return found, err
	}
	if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
		return found, fmt.Errorf("agent's answer: %w", err)
	}
	return found, nil
}

// refused is what an answer says that is none.
func refused(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("agent's answer: %w", err)
	}
	return fmt.Errorf("agent: %s", strings.TrimSpace(string(text)))
}
