package bridge

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

const (
	schemePlain = "mqtt"
	schemeTLS   = "mqtts"
)

func (c Config) withDefaults() Config {
	c.Broker = cmp.Or(c.Broker, "mqtt://127.0.0.1:1883")
	if c.ClientID == "" {
		host, _ := os.Hostname()
		c.ClientID = "tidemark-" + host
	}
	c.Session = cmp.Or(c.Session, 24*time.Hour)
	c.ReceiveMaximum = cmp.Or(c.ReceiveMaximum, 512)
	c.MaxPayload = cmp.Or(c.MaxPayload, 64<<10)
	c.Deadline = cmp.Or(c.Deadline, 30*time.Second)
	c.Drain = cmp.Or(c.Drain, 10*time.Second)
	c.DeadLetters = cmp.Or(c.DeadLetters, "dead-letters")
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// check refuses what cannot work, and returns the broker's address.
func (c *Config) check(routes *inbound.Routes) (*url.URL, error) {
	u, err := brokerURL(c.Broker)
	switch {
	case err != nil:
		return nil, err
	case routes == nil || len(routes.Filters()) == 0:
		return nil, errors.New("there are no routes")
	case c.Tenant.IsZero() && !routes.SaysTenant():
		return nil, errors.New("a route does not say the tenant of its messages: it needs a level +tenant, tenant=…, or a connection that belongs to one tenant")
	case c.Session < time.Second || c.Session > math.MaxUint32*time.Second || c.Session%time.Second != 0:
		return nil, fmt.Errorf("the session is kept for %v; want whole seconds, at least one", c.Session)
	case c.MaxPayload < 1 || c.MaxPayload > maxPayload:
		return nil, fmt.Errorf("the most bytes of a payload are %d; want 1 to %d", c.MaxPayload, maxPayload)
	case c.Deadline < time.Second:
		return nil, fmt.Errorf("the deadline is %v; want at least 1s", c.Deadline)
	case c.Drain < 0:
		return nil, fmt.Errorf("the time to drain is %v; want 0 or more", c.Drain)
	case strings.ContainsAny(c.Group, "/+#"):
		return nil, fmt.Errorf("the group %q has a /, + or #", c.Group)
	case strings.ContainsAny(c.DeadLetters, "+#") || strings.HasSuffix(c.DeadLetters, "/"):
		return nil, fmt.Errorf("the topic of dead letters %q has a + or #, or ends with /", c.DeadLetters)
	}
	return u, nil
}

// maxPayload leaves space for a packet's topic and properties.
const maxPayload = 1 << 20

func brokerURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the broker is not a URL; want mqtt://host:port or mqtts://host:port") // err would repeat a password in it
	case u.Scheme != schemePlain && u.Scheme != schemeTLS, u.Hostname() == "", strings.Trim(u.Path, "/") != "":
		return nil, fmt.Errorf("the broker is %q; want mqtt://host:port or mqtts://host:port", u.Redacted())
	case u.User != nil:
		return nil, errors.New("the broker's URL has a user; give the user name and the password apart from it")
	case u.Port() == "" && u.Scheme == schemePlain:
		u.Host = net.JoinHostPort(u.Hostname(), "1883")
	case u.Port() == "":
		u.Host = net.JoinHostPort(u.Hostname(), "8883")
	}
	return u, nil
}

// sessionSeconds is how long the broker keeps the session without a connection.
func (c *Config) sessionSeconds() uint32 {
	if c.Clean {
		return 0
	}
	return uint32(c.Session / time.Second)
}
