/** The architectures that a release is for, in Go's names. The chart offers GPUs of their nodes. */
export const ARCHITECTURES = ['amd64', 'arm64'] as const;

/** The repositories that the image and the chart are published in. A signature is made for one of them. */
export const IMAGE_NAME = 'ghcr.io/berth-dev/berth';
export const CHART_NAME = 'ghcr.io/berth-dev/charts/berth';
