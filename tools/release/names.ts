/** The repositories that the image and the chart are published in. A signature is made for one of them. */
export const IMAGE_NAME = 'ghcr.io/berth-dev/berth';
export const CHART_NAME = 'ghcr.io/berth-dev/charts/berth';
