"""Impute a table, see what was selected, and compare the error with that of other imputers."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.impute import KNNImputer, SimpleImputer

from hirank import Imputer
from hirank.datasets import uniform_missing
from hirank.metrics import standardized_rmse

truth = load_iris(as_frame=True).data
observed = uniform_missing(truth.shape, 0.2, random_state=0)
table = truth.where(observed)

model = Imputer(bounds=(0, None), random_state=0).set_output(transform="pandas")
filled = model.fit_transform(table)
print(model.summary())

print("\nError at the removed entries, in standard deviations:")
for name, method in {"column means": SimpleImputer(), "nearest neighbors": KNNImputer()}.items():
    print(f"  {name:18s}{standardized_rmse(method.fit_transform(table), truth, observed):.3f}")
print(f"  {'hirank':18s}{standardized_rmse(filled, truth, observed):.3f}")

new = truth.tail(1).assign(**{"petal width (cm)": np.nan})  # the model is not refitted
print(f"\nA new row:\n{model.transform(new).round(1).to_string(index=False)}")
