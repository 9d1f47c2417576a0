package telemetry

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// maker makes instruments. One that is refused measures nothing.
type maker struct{ metric.Meter }

// refused tells OpenTelemetry's error handler of an error.
func refused(err error) bool {
	if err != nil {
		otel.Handle(err)
	}
	return err != nil
}

func (m maker) seconds(name, description string) metric.Float64Histogram {
	h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(secondsBuckets...), metric.WithDescription(description))
	if refused(err) {
		return noop.Float64Histogram{}
	}
	return h
}

func (m maker) counts(name, unit, description string) metric.Int64Histogram {
	h, err := m.Int64Histogram(name, metric.WithUnit(unit), metric.WithExplicitBucketBoundaries(rowsBuckets...), metric.WithDescription(description))
	if refused(err) {
		return noop.Int64Histogram{}
	}
	return h
}

// observed are instruments that are read by a callback.
type observed struct {
	maker
	all []metric.Observable
}

func (o *observed) sum(name, unit, description string) metric.Int64Observable {
	i, err := o.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	if refused(err) {
		return noop.Int64ObservableCounter{}
	}
	o.all = append(o.all, i)
	return i
}

func (o *observed) level(name, unit, description string) metric.Int64Observable {
	i, err := o.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	if refused(err) {
		return noop.Int64ObservableUpDownCounter{}
	}
	o.all = append(o.all, i)
	return i
}

func (o *observed) addSeconds(name, description string) metric.Float64Observable {
	i, err := o.Float64ObservableCounter(name, metric.WithUnit("s"), metric.WithDescription(description))
	if refused(err) {
		return noop.Float64ObservableCounter{}
	}
	o.all = append(o.all, i)
	return i
}

func (o *observed) ageSeconds(name, description string) metric.Float64Observable {
	i, err := o.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
	if refused(err) {
		return noop.Float64ObservableGauge{}
	}
	o.all = append(o.all, i)
	return i
}
