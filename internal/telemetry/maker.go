package telemetry

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// maker creates instruments. If one cannot be created, it measures nothing.
type maker struct{ metric.Meter }

// refused reports an error to OpenTelemetry's error handler.
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

// observed holds instruments that a callback reads.
type observed struct {
	maker
	all []metric.Observable
}

// kept keeps a new instrument for the callback, or returns none if it was refused.
func kept[I metric.Observable](o *observed, i I, err error, none I) I {
	if refused(err) {
		return none
	}
	o.all = append(o.all, i)
	return i
}

func (o *observed) sum(name, unit, description string) metric.Int64Observable {
	i, err := o.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return kept[metric.Int64Observable](o, i, err, noop.Int64ObservableCounter{})
}

func (o *observed) level(name, unit, description string) metric.Int64Observable {
	i, err := o.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return kept[metric.Int64Observable](o, i, err, noop.Int64ObservableUpDownCounter{})
}

func (o *observed) addSeconds(name, description string) metric.Float64Observable {
	i, err := o.Float64ObservableCounter(name, metric.WithUnit("s"), metric.WithDescription(description))
	return kept[metric.Float64Observable](o, i, err, noop.Float64ObservableCounter{})
}

func (o *observed) ageSeconds(name, description string) metric.Float64Observable {
	i, err := o.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
	return kept[metric.Float64Observable](o, i, err, noop.Float64ObservableGauge{})
}
