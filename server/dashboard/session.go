package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"sync"
)

// door knows who may come in: first whoever has the token, then whoever got the
// session for it.
type door struct {
	mu    sync.Mutex
	token string // "" once it was used
	// session is the cookie's value, key that of the header beside it.
	session, key string
}

func newDoor() *door {
	return &door{token: rand.Text(), session: rand.Text(), key: rand.Text()}
}

// open spends the token. Of several that come with it at once it lets one in.
func (d *door) open(token string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.token == "" || !same(d.token, token) {
		return false
	}
	d.token = ""
	return true
}

// same takes as long for a wrong secret as for the right one.
func same(secret, given string) bool {
	return subtle.ConstantTimeCompare([]byte(secret), []byte(given)) == 1
}
