"""Weights, communities, last resort and equal weights, as a router that runs FRR sees them."""

from lib.case import main
from lib.weighing import *  # the tests: the same for every kind of router

main(lambda: Sites("frr"))
