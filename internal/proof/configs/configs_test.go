package configs

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/internal/proof/broken"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

var (
	seed   = flag.Uint64("configs.seed", 1, "what the operations and the set-ups follow from")
	setups = flag.Int("configs.setups", 40, "how many set-ups are tried")
	steps  = flag.Int("configs.steps", 100, "how many operations each of them makes")
)

// every is after how many operations the questions are asked.
const every = 20

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConfigs makes the same operations in all set-ups, and asks the same questions.
func TestConfigs(t *testing.T) {
	testkit.Plain(t)
	ops := plan(*seed, *steps)
	var answers, done atomic.Int64
	began := time.Now()
	t.Cleanup(func() {
		t.Logf("-configs.seed=%d: %d operations and %d answers of %d set-ups in %v", *seed, done.Load(), answers.Load(), *setups, time.Since(began).Round(time.Millisecond))
	})
	for n := range *setups {
		s := draw(n, rand.New(rand.NewPCG(*seed, uint64(n))))
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s)
			defer func() { answers.Add(int64(w.answers)) }()
			m := new(model)
			for i, o := range ops {
				if err := o.run(t.Context(), w); err != nil {
					t.Fatalf("-configs.seed=%d, %v\noperation %d, %s: %v", *seed, s, i, o.name, err)
				}
				done.Add(1)
				if o.model(m); i%every != every-1 {
					continue
				}
				if wrong := w.ask(t.Context(), m); len(wrong) > 0 {
					for _, text := range wrong[:min(5, len(wrong))] {
						t.Errorf("-configs.seed=%d, %v\nafter operation %d, %s: %s", *seed, s, i, o.name, text)
					}
					break
				}
			}
			w.shut()
		})
	}
}

// TestBroken checks that the test catches broken versions of the SDK.
func TestBroken(t *testing.T) { broken.Run(t) }
