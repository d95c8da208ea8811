package gc

import (
	"context"
	"time"
)

// Inventory returns the images of the engine and what is known of each, as a pass sees
// them. It waits for a pass that is under way.
func (c *ImageCollector) Inventory(ctx context.Context) (images []Image, err error) {
	err = ctx.Err()
	c.passing(ctx, func() {
		c.learn()
		images, err = c.inventory(ctx)
	})
	return images, err
}

// Preview returns what a pass would remove first; all is as in Collect.
func (c *ImageCollector) Preview(ctx context.Context, all bool) (list []ImageRemoval, err error) {
	if c.Policy.Off {
		return nil, nil
	}
	err = ctx.Err()
	c.passing(ctx, func() {
		c.learn()
		need, why := int64(everything), byHand
		if !all {
			need, why, err = c.need(ctx, false)
		}
		images, failed := c.inventory(ctx)
		if failed != nil {
			err = failed
			return
		}
		list = SelectImages(images, c.Policy, need, why, time.Now())
	})
	return list, err
}

// Collect makes a pass now: as the policy says, or with all of everything that may go,
// whatever the thresholds.
func (c *ImageCollector) Collect(ctx context.Context, all bool) (freed Freed) {
	if !c.Policy.Off {
		c.passing(ctx, func() { freed = c.pass(ctx, all) })
	}
	return freed
}

// Preview returns the dead containers that a pass would remove; all is as in Collect.
func (c *ContainerCollector) Preview(ctx context.Context, all bool) ([]DeadRemoval, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	dead, err := c.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c.look(dead, now)
	list := SelectContainers(dead, c.policy(all), now)
	for i := range list {
		if all {
			list[i].Why = byHand
		}
	}
	return list, nil
}

// Collect makes a pass now: as the policy says, or with all of everything that may go
// and is not younger than the minimum age.
func (c *ContainerCollector) Collect(ctx context.Context, all bool) Freed {
	why := ""
	if all {
		why = byHand
	}
	return c.pass(ctx, c.policy(all), why)
}

func (c *ContainerCollector) policy(all bool) Policy {
	if all {
		return Policy{MinAge: c.Policy.MinAge}
	}
	return c.Policy
}

// byHand is why things go that would stay otherwise.
const byHand = "asked for by hand"
