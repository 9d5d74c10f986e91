"""Classes: rosters, submissions, grades, scores, reports and exports of a whole course."""
